package gateway

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/e2a"
)

// socketWrite is how long a frame may take to be taken.
const socketWrite = 30 * time.Second

// Socket answers envelopes over WebSocket: one JSON object per message, text in both
// directions. When a connection ends, the turns that its envelopes began are stopped. Who
// may connect, pages of others above all, has to be decided before.
func (g *Gateway) Socket() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			http.Error(w, errEnding.Error(), http.StatusServiceUnavailable)
			return
		}
		defer g.work.Done()
		// The origin was checked by who serves this, by a list that Accept does not know.
		conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
		if err != nil {
			g.log.Debug("no WebSocket", "err", err) // Accept has answered
			return
		}
		defer func() { _ = conn.CloseNow() }()
		conn.SetReadLimit(MaxLine)
		g.converse(r.Context(), conn)
	})
}

// converse answers a connection's envelopes until it ends, which stops their turns. When the
// gateway closes, what runs is answered, but a client that does not read is not waited for
// long.
func (g *Gateway) converse(ctx context.Context, conn *websocket.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	messages := make(chan []byte)
	go readMessages(ctx, conn, messages)
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
		for range messages { // until its reader has ended
		}
	}()
	send := g.sender(ctx, cancel, conn)
	for {
		select {
		case text, ok := <-messages:
			if !ok {
				return
			}
			g.take(ctx, line{text: text}, send, &running)
		case <-g.ctx.Done():
			defer time.AfterFunc(g.farewell, func() { _ = conn.CloseNow() }).Stop()
			running.Wait()
			_ = conn.Close(websocket.StatusGoingAway, errEnding.Error())
			return
		}
	}
}

// readMessages sends the messages of a connection, and closes the channel behind the last.
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

// sender returns what writes frames to a connection, each whole. If one is not taken,
// nobody reads what else is said: broken is called.
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
