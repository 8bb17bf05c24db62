package remote_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server"
)

// A client that follows a chat slowly is shown its end as it was, and not that it was interrupted,
// although the turn is over before the client has read what came before.
func TestFollowSlowly(t *testing.T) {
	t.Parallel()
	const n = 3000
	r := newRig(t, fmt.Sprintf(`turns:
  - steps:
      - {text: '%s ', repeat: %d, calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: x}}]}
      - {text: 'Done.'}
`, strings.Repeat("x", 1000), n), nil, nil)
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	r.Await(0, "the approval", fake.Content("toolCallRun", `"manualApproval":true`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	toServer, in := io.Pipe()
	out, toClient := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(ctx, toServer, toClient, server.Options{Host: r.daemon, Version: "test", Shared: true, Follow: true})
		_ = toClient.Close()
	}()
	reads, following, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var all strings.Builder
	begin, end := sync.OnceFunc(func() { close(following) }), sync.OnceFunc(func() { close(ended) })
	conn := jsonrpc.NewConn(out, in, jsonrpc.Options{})
	conn.Start(ctx, func(_ context.Context, req *jsonrpc.Request) (any, error) {
		if req.Method == "$/positioned" || req.Method == "chat/contentReceived" {
			begin()
			<-reads
			all.Write(bytes.ReplaceAll(req.Params, []byte("x"), nil))
			if bytes.Contains(req.Params, []byte(`"state":"finished"`)) {
				end()
			}
		}
		return nil, nil
	})
	defer func() { cancel(); conn.Close(); <-served }()
	if err := conn.Call(ctx, "initialize", object{"capabilities": object{"codeAssistant": object{"chat": true}}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := conn.Notify(ctx, "initialized", object{}); err != nil {
		t.Fatal(err)
	}
	followed := make(chan error, 1)
	go func() { followed <- conn.Call(ctx, "chat/follow", object{"chatId": "c", "seq": 3}, nil) }()
	<-following
	if status, result := r.do("POST", "/chats/c/approve/call_1", nil); status != 204 {
		t.Fatal(status, result)
	}
	r.Await(0, "the end", fake.Content("progress", `"finished"`))
	close(reads)
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	<-ended
	if got := all.String(); strings.Contains(got, "toolCallRejected") || !strings.Contains(got, "Done.") {
		t.Error(got[max(0, len(got)-2000):])
	}
}
