package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// link is a connection to an ECA server of this process: a stream or the hub is a client of the ECA
// protocol, like an editor.
type link struct {
	conn *jsonrpc.Conn
	end  func() // ends the server and waits for it
}

// connect starts a server. handle gets its messages in order; while it waits, the server waits.
func (f *Face) connect(ctx context.Context, handle jsonrpc.Handler) *link {
	ctx, cancel := context.WithCancel(ctx)
	fromUs, toServer := io.Pipe()
	fromServer, toUs := io.Pipe()
	var served sync.WaitGroup
	served.Go(func() {
		if err := f.opts.Serve(ctx, fromUs, toUs, f.growPeriod); err != nil && ctx.Err() == nil {
			f.opts.Log.Error("remote: the server of a stream ended", "err", err)
		}
		_, _ = fromUs.CloseWithError(io.ErrClosedPipe), toUs.CloseWithError(io.EOF)
	})
	l := &link{conn: jsonrpc.NewConn(fromServer, toServer, jsonrpc.Options{Log: f.opts.Log})}
	l.end = func() {
		cancel()
		l.conn.Close()
		_, _ = fromServer.Close(), toServer.Close()
		served.Wait()
		<-l.conn.Done()
	}
	l.conn.Start(ctx, handle)
	return l
}

// introduce begins to speak with the server.
func (f *Face) introduce(ctx context.Context, l *link, questions bool) error {
	params := map[string]any{
		"clientInfo": map[string]string{"name": "eca-remote", "version": f.opts.Version},
		"capabilities": map[string]any{"codeAssistant": map[string]any{
			"chat": true, "chatCapabilities": map[string]bool{"askQuestion": questions},
		}},
	}
	if err := l.conn.Call(ctx, "initialize", params, nil); err != nil {
		return err
	}
	return l.conn.Notify(ctx, "initialized", struct{}{})
}

// position is a place in a chat's log: the next event, and how much of it was shown.
type position struct {
	Seq    int64 `json:"seq"`
	Offset int   `json:"offset"`
}

// positioned is a notification of a chat, with the position after it; zero if it has none.
type positioned struct {
	ChatID string `json:"chatId"`
	position
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// chatCall calls one of the methods for clients that follow; done says whether there was something
// to do.
func (l *link) chatCall(ctx context.Context, method string, params map[string]any) (done bool, err error) {
	var res struct {
		Done bool `json:"done"`
	}
	err = l.conn.Call(ctx, method, params, &res)
	return res.Done, err
}

// chatPosition is a position in the log of a chat. began is when that chat was created, in milliseconds
// since 1970: a later chat may have the same id.
type chatPosition struct {
	chat string
	position
	began int64
}

// maxPositions bounds the chats that an event's id names.
const maxPositions = 32

// formatID writes positions as the id of an event.
func formatID(list []chatPosition) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = fmt.Sprintf("%s:%d.%d.%s", url.QueryEscape(p.chat), p.Seq, p.Offset, strconv.FormatInt(p.began, 36))
	}
	return strings.Join(parts, ",")
}

// parseID reads what formatID wrote, or clients forged. It leaves out wrong parts.
func parseID(text string) (list []chatPosition) {
	for part := range strings.SplitSeq(text, ",") {
		name, at, _ := strings.Cut(part, ":")
		seq, rest, _ := strings.Cut(at, ".")
		offset, began, _ := strings.Cut(rest, ".")
		id, err := url.QueryUnescape(name)
		n, err2 := strconv.ParseInt(seq, 10, 64)
		m, err3 := strconv.ParseInt(offset, 10, 32)
		t, err4 := strconv.ParseInt(began, 36, 64)
		if errors.Join(err, err2, err3, err4) == nil && id != "" && n > 0 && m >= 0 && len(list) < maxPositions {
			list = append(list, chatPosition{id, position{n, int(m)}, t})
		}
	}
	return list
}
