package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// socketWrite is how long a client may take to read a frame.
const socketWrite = 30 * time.Second

// Socket returns a handler that answers envelopes over WebSocket: one JSON object per text message,
// in both directions. When a connection ends, the turns of its envelopes are stopped. The handler
// authenticates no clients and checks no origins: its caller must.
func (g *Gateway) Socket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, ok := g.opts.Turns.Hold()
		if !ok {
			http.Error(w, turn.ErrShutdown.Error(), http.StatusServiceUnavailable)
			return
		}
		defer release()
		// The caller has already checked the origin.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			g.opts.Log.Debug("cannot accept a WebSocket", "err", err) // Accept has answered
			return
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(MaxLine)
		g.converse(r.Context(), conn)
	})
}

// converse answers the envelopes of a connection until it ends, which stops their turns. When the
// service closes, it sends the answers to running work, but waits at most CloseGrace for a client
// that does not read.
func (g *Gateway) converse(ctx context.Context, conn *websocket.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	messages := make(chan []byte)
	go readMessages(ctx, conn, messages)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for range messages { // wait for the end of readMessages
		}
	}()
	send := g.sender(ctx, cancel, conn)
	for {
		select {
		case text, ok := <-messages:
			if !ok {
				return
			}
			g.startAnswer(ctx, line{text: text}, send, &running)
		case <-g.opts.Turns.Closing():
			defer time.AfterFunc(g.opts.CloseGrace, func() { _ = conn.CloseNow() }).Stop()
			running.Wait()
			_ = conn.Close(websocket.StatusGoingAway, turn.ErrShutdown.Error())
			return
		}
	}
}

// readMessages sends the messages of a connection to the channel, and closes it after the last one.
func readMessages(ctx context.Context, conn *websocket.Conn, messages chan<- []byte) {
	defer close(messages)
	for {
		kind, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			_ = conn.Close(websocket.StatusUnsupportedData, "envelopes are text")
			return
		}
		select {
		case messages <- text:
		case <-ctx.Done():
			return
		}
	}
}

// sender returns a function that writes frames to a connection, one at a time. It calls broken if a
// frame cannot be written, because the client has then stopped reading.
func (g *Gateway) sender(ctx context.Context, broken func(), conn *websocket.Conn) Send {
	var mu sync.Mutex
	return func(r e2a.Response) error {
		line, err := e2a.Line(r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		limited, done := context.WithTimeout(ctx, socketWrite)
		defer done()
		if err := conn.Write(limited, websocket.MessageText, line); err != nil {
			broken()
			return err
		}
		return nil
	}
}
