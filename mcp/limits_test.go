package mcp

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// newTestConnection returns a connection without configuration; the test plays its server.
func newTestConnection(t *testing.T) (*connection, *testTransport) {
	t.Helper()
	s, l := newLine(t, nil)
	return &connection{
		session: s, ctx: s.ctx, clean: func(text string) string { return text },
		slots: make(chan struct{}, parallelCalls(config.MCPServer{})), silenceLimit: callLimit(config.MCPServer{}),
	}, l
}

// A call without configured limits ends when the server is silent for two minutes. A call that
// reports progress all the time ends after an hour.
func TestLimitsOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration // between reports of progress; 0 means no reports
		want  string
		after time.Duration
	}{
		"silent":    {0, "said nothing for 2m0s", defaultLimit},
		"talkative": {time.Minute, "cancelled after 1h0m0s", maxCall},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, l := newTestConnection(t)
				start := time.Now()
				ended := make(chan error, 1)
				go func() {
					_, err := conn.call(t.Context(), &Tool{name: "t", spec: tools.Spec{Name: "t"}}, tools.Call{}, nil)
					ended <- err
				}()
				token := (<-l.out).key()
				rest := make(chan struct{})
				go func() { // answers the cancellation and the ping
					defer close(rest)
					for range 2 {
						<-l.out
					}
				}()
				for n := 1; c.every > 0 && time.Since(start) < 2*maxCall && len(ended) == 0; n++ {
					time.Sleep(c.every)
					l.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d,"message":"on"}}`, token, n))
				}
				err := <-ended
				if took := time.Since(start); err == nil || !strings.Contains(err.Error(), c.want) || took < c.after || took > c.after+c.every {
					t.Errorf("after %s: %v", took, err)
				}
				<-rest
			})
		})
	}
}

// A server gets a limited number of calls at a time, however many are waiting.
func TestCallsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, l := newTestConnection(t)
		ended := make(chan error, defaultParallel+1)
		for range defaultParallel + 1 {
			go func() {
				_, err := conn.call(t.Context(), &Tool{name: "t", spec: tools.Spec{Name: "t"}}, tools.Call{}, nil)
				ended <- err
			}()
		}
		var first string
		for range defaultParallel {
			first = (<-l.out).key()
		}
		synctest.Wait()
		select {
		case <-l.out:
			t.Error("the server has more calls than it should")
		default:
		}
		l.say(t, `{"jsonrpc":"2.0","id":`+first+`,"result":{"content":[]}}`)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if !strings.Contains(string((<-l.out).Params), `"name":"t"`) {
			t.Error("the last call is not sent")
		}
		conn.session.close("the test is over")
		for range defaultParallel {
			<-ended
		}
	})
}
