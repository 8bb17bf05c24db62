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

// link is a connection to an ECA server in this process. Streams and the hub are its clients: they
// use the ECA protocol, as an editor does.
type link struct {
	conn *jsonrpc.Conn
	end  func() // ends the server and waits for it
}

// connect starts a server and returns the connection to it. handle gets the server's messages in order;
// while handle blocks, the server waits.
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

// initialize sends initialize and initialized. questions says whether the client can show questions.
func (f *Face) initialize(ctx context.Context, l *link, questions bool) error {
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

// position is a position in a chat's log: the sequence number of the next event, and how much of its
// text was shown.
type position struct {
	Seq    int64 `json:"seq"`
	Offset int   `json:"offset"`
}

// positioned is a notification about a chat, with the position in the log after it. The position is
// zero if the notification has none.
type positioned struct {
	ChatID string `json:"chatId"`
	position
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// chatCall calls one of the methods that the server has only for streams (server.Options.Follow). done
// is the result of the method: whether it had an effect.
func (l *link) chatCall(ctx context.Context, method string, params map[string]any) (done bool, err error) {
	var res struct {
		Done bool `json:"done"`
	}
	err = l.conn.Call(ctx, method, params, &res)
	return res.Done, err
}

// chatPosition is a position in the log of a chat. created is the time at which the chat was created,
// in milliseconds since 1970. It distinguishes the chat from a later one with the same id.
type chatPosition struct {
	chat string
	position
	created int64
}

// maxPositions limits how many chats the id of an event contains.
const maxPositions = 32

// formatID writes positions as the id of an event.
func formatID(list []chatPosition) string {
	parts := make([]string, len(list))
	for i, p := range list {
		parts[i] = fmt.Sprintf("%s:%d.%d.%s", url.QueryEscape(p.chat), p.Seq, p.Offset, strconv.FormatInt(p.created, 36))
	}
	return strings.Join(parts, ",")
}

// parseID parses an id of an event. It skips invalid parts, because clients can send anything.
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
