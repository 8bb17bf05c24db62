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

// converse answers a connection's envelopes until it ends.
func (g *Gateway) converse(ctx context.Context, conn *websocket.Conn) {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, func() { _ = conn.Close(websocket.StatusGoingAway, "eca is ending") })()
	var mu sync.Mutex // frames are written whole
	send := func(r e2a.Response) error {
		line, err := e2a.Line(r)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		limited, done := context.WithTimeout(ctx, socketWrite)
		defer done()
		if err := conn.Write(limited, websocket.MessageText, line); err != nil {
			cancel() // nobody reads what else is said
			return err
		}
		return nil
	}
	for {
		kind, text, err := conn.Read(ctx)
		if err != nil {
			return
		}
		if kind != websocket.MessageText {
			_ = conn.Close(websocket.StatusUnsupportedData, "envelopes are text")
			return
		}
		g.take(ctx, line{text: text}, send, &running)
	}
}
