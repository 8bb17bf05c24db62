package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/remote"
	"github.com/seed-dec29ce4/eca/server"
)

// A client that follows a chat slowly is shown its end as it was, and not that it was interrupted,
// although the turn is over before the client has read what came before.
func TestSlowClientSeesTheRealEnd(t *testing.T) {
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
		_ = server.Serve(ctx, toServer, toClient, server.Options{Host: r.daemon, Version: "test", Shared: true, Follow: func() time.Duration { return 50 * time.Millisecond }})
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

// A page that reconnects without the id of its last event still shows parts of chats. Chats that it does
// not load again, also one that ended meanwhile, are sent from their beginning: no word is missing or
// shown twice.
func TestChatsThatAreNotLoaded(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	const n = 600
	r := newRig(t, fmt.Sprintf(`turns:
  - {user: '^short', steps: [{text: 'The short one.'}]}
  - {user: '^long', steps: [{text: '0123456789 ', repeat: %d, delay: 10ms}]}
`, n), nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	for id, message := range map[string]string{"short": "short", "left": "long", "loaded": "long"} {
		if status, result := r.do("POST", "/chats/"+id+"/prompt", object{"message": message}); status != 200 {
			t.Fatal(status, result)
		}
		page.await(0, "chat:content-received", `"chatId":"`+id+`"`, `"role":"assistant"`)
	}
	page.await(0, "chat:content-received", `"chatId":"short"`, `"finished"`)
	page.close()
	page = r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("GET", "/chats/loaded", nil); status != 200 {
		t.Fatal(status, result)
	}
	of := func(list []event, id string) (out []event) {
		for _, e := range list {
			if strings.Contains(e.data, `"chatId":"`+id+`"`) {
				out = append(out, e)
			}
		}
		return out
	}
	for id, want := range map[string]string{"left": pulseText(n), "short": "The short one."} {
		page.await(0, "chat:cleared", id)
		page.await(0, "chat:content-received", `"chatId":"`+id+`"`, want[len(want)-4:])
		if id == "left" {
			page.await(0, "chat:content-received", `"chatId":"left"`, `"finished"`)
		}
		list := of(page.all(), id)
		if list[0].name != "chat:cleared" || list[1].name != "chat:opened" || text(list) != want {
			t.Errorf("%s: %s and %s, then %d bytes, not %d", id, list[0].name, list[1].name, len(text(list)), len(want))
		}
	}
	for _, e := range of(page.all(), "loaded") {
		if e.name == "chat:cleared" {
			t.Error("the chat that the page loaded is shown once more")
		}
	}
}

// A page that loads a chat whose subagent waits for approval learns which chat is the subagent's,
// and is shown the call: in a stream that showed the chat before, and in one that did not.
func TestLoadWithSubagent(t *testing.T) {
	t.Parallel()
	r := newRig(t, `turns:
  - {user: 'child task', steps: [{calls: [{id: s2, tool: eca__write_file, arguments: {path: "${workspace}/child.txt", content: c}}]}, {text: Child done.}]}
  - {user: '^delegate', steps: [{calls: [{id: s1, tool: eca__spawn_agent, arguments: {agent: general, task: child task, activity: looking}}]}, {text: Delegated.}]}
`, nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "delegate"}); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", `"parentChatId":"c"`, `"manualApproval":true`)
	var asked event
	for _, again := range []bool{false, true} {
		if again {
			page.close()
			page = r.events(r.token, "")
			page.await(0, "session:connected")
		}
		from := len(page.all())
		if status, result := r.do("GET", "/chats/c", nil); status != 200 {
			t.Fatal(status, result)
		}
		from, _ = page.await(from, "chat:content-received", `"chatId":"c"`, "toolCallRunning", "subagentChatId")
		_, asked = page.await(from, "chat:content-received", `"parentChatId":"c"`, "toolCallRun", `"manualApproval":true`)
	}
	var p struct {
		ChatID  string
		Content struct{ ID string }
	}
	if err := json.Unmarshal([]byte(asked.data), &p); err != nil {
		t.Fatal(err)
	}
	if status, result := r.do("POST", "/chats/"+p.ChatID+"/approve/"+p.Content.ID, nil); status != 204 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", "Delegated.")
}

// A load does not wait until what another chat shows has arrived at the page.
func TestLoadBesideAnotherChat(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	r := newRig(t, "turns:\n  - {user: '^short', steps: [{text: Short.}]}\ndefault: {steps: [{text: '0123456789 ', repeat: 100000, delay: 2ms}]}\n", nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	for id, part := range map[string]string{"short": `"finished"`, "long": "0123"} {
		if status, result := r.do("POST", "/chats/"+id+"/prompt", object{"message": id}); status != 200 {
			t.Fatal(status, result)
		}
		page.await(0, "chat:content-received", `"chatId":"`+id+`"`, part)
	}
	const arrival = 300 * time.Millisecond // see arrivalTime
	fastest := time.Minute
	for range 6 {
		time.Sleep(2 * arrival) // the load before has ended, and what was written of the chat has arrived
		begun := time.Now()
		if status, result := r.do("GET", "/chats/short", nil); status != 200 {
			t.Fatal(status, result)
		}
		fastest = min(fastest, time.Since(begun))
	}
	if fastest > arrival*2/3 {
		t.Errorf("the fastest load took %s", fastest)
	}
	r.do("POST", "/chats/long/stop", nil)
}

// A page that takes long to its first load repeats after the load what it was shown meanwhile. Then
// the chat is shown to it from its beginning, and each word is there once.
func TestLateFirstLoad(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	const n = 1000
	r := newRig(t, pulses(n, "5ms"), nil, nil)
	first := r.events(r.token, "")
	first.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	first.await(0, "chat:content-received", `"role":"assistant"`)
	first.close()
	page := r.events(r.token, "")
	restoring, _ := page.await(0, "chat:cleared", `"c"`) // the load did not come in time
	restoring++
	page.await(restoring, "chat:content-received", `"role":"assistant"`)
	status, loaded := r.do("GET", "/chats/c", nil)
	if status != 200 {
		t.Fatal(status, loaded)
	}
	again, _ := page.await(restoring, "chat:cleared", `"c"`)
	r.Await(0, "the end", fake.Content("progress", `"finished"`))
	for deadline := time.After(time.Minute); len(text(page.all()[again:])) < len(pulseText(n)); {
		changed := page.next()
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%d bytes are shown, not %d", len(text(page.all()[again:])), len(pulseText(n)))
		}
	}
	if got := text(page.all()[again:]); got != pulseText(n) {
		t.Errorf("%d bytes are shown, not %d", len(got), len(pulseText(n)))
	}
}

// A stream gets the growth of a text every 50 ms, and not each delta. With dozens of streams, which
// would delay the editor, each gets it less often.
func TestGrowingText(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	for streams, period := range map[int]time.Duration{1: 50 * time.Millisecond, 40: 200 * time.Millisecond} {
		t.Run(fmt.Sprint(streams), func(t *testing.T) {
			t.Parallel()
			testGrowingText(t, streams, period)
		})
	}
}

func testGrowingText(t *testing.T, streams int, period time.Duration) {
	const n = 2000
	r := newRig(t, fmt.Sprintf("turns:\n  - steps: [{text: %q, delay: 2ms}]\n", pulseText(n)), nil, nil)
	page, token := r.events(r.token, ""), ""
	page.await(0, "session:connected")
	for i := range streams - 1 {
		if i%4 == 0 {
			token, _ = r.pair(remote.Watch)
		}
		r.events(token, "").await(0, "session:connected")
	}
	start := time.Now()
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", `"finished"`)
	pieces, limit := 0, 20+int(time.Since(start)/(period/2))
	for _, e := range page.all() {
		if e.name == "chat:content-received" && strings.Contains(e.data, `"role":"assistant"`) {
			pieces++
		}
	}
	if pieces > limit || text(page.all()) != pulseText(n) {
		t.Errorf("the text came in %d pieces, not in %d, and has %d bytes", pieces, limit, len(text(page.all())))
	}
}

// A chat that is announced before a stream is connected, and begins afterwards, is shown in it.
func TestChatThatBeginsWhileConnecting(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: 'The answer.'}]\n", nil, nil)
	var page *events
	connect := sync.OnceFunc(func() {
		page = r.events(r.token, "")
		page.await(0, "session:connected")
	})
	defer r.daemon.Engine().Subscribe(func(n chat.News) {
		if n.Kind == chat.ChatBegun {
			connect() // between the announcement and the prompt
		}
	}).Close()
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	page.await(0, "chat:content-received", `"chatId":"c"`, "The answer.")
}

// A client that comes back with the id of its last event is not shown again what it knows: neither a
// chat that was shown from its beginning, nor one that it loaded.
func TestOnlyWhatWasMissed(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: 'The answer.'}]\n  - steps: [{text: 'More.'}]\n", nil, nil)
	for _, id := range []string{"shown", "loaded"} {
		mark := r.Mark()
		r.Call("chat/prompt", object{"chatId": id, "message": "go"})
		r.Await(mark, "the end of "+id, fake.Finished())
	}
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("GET", "/chats/loaded", nil); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:opened", "loaded")
	page.await(0, "chat:cleared", "shown")
	id := ""
	for from := 0; !strings.Contains(id, "shown:"); { // an event after the chat has the position
		r.do("POST", "/trust", object{"trust": true})
		n, e := page.await(from, "trust:updated")
		from, id = n+1, e.id
	}
	page.close()
	r.Call("chat/prompt", object{"chatId": "shown", "message": "again"})
	page = r.events(r.token, id)
	_, first := page.await(0, "session:connected", `"resumedChats"`)
	for _, chatID := range []string{"shown", "loaded"} {
		if !strings.Contains(first.data, `"`+chatID+`"`) {
			t.Errorf("%s is not resumed: %s", chatID, id)
		}
	}
	page.await(0, "chat:content-received", "shown", "More.")
	time.Sleep(3 * time.Second) // chats that have to be shown again are by then
	for _, e := range page.all() {
		if e.name == "chat:cleared" || strings.Contains(e.data, "The answer.") {
			t.Error("the page was shown again what it knows:", e)
		}
	}
}

// A page that loads a chat after it missed the end of a turn learns that the chat is idle: the
// messages do not say so.
func TestEndOfATurnThatWasMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t, `default: {steps: [{text: 'Done.'}]}`, nil, nil)
	first := r.events(r.token, "")
	first.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	first.close()
	r.Await(0, "the end", fake.Content("progress", `"finished"`))
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("GET", "/chats/c", nil); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:status-changed", `"c"`, `"idle"`)
}
