package remote_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
	"github.com/seed-dec29ce4/eca/remote"
)

// killableRig is a rig whose daemon is a process of its own.
func killableRig(t *testing.T, model string) (r *rig, start func() (kill func())) {
	t.Helper()
	port := testkit.FreePort(t)
	w := daemontest.New(t, model, func(c object) { c["remote"] = object{"enabled": true, "port": port} })
	r = &rig{t: t, world: w, port: port, devices: remote.OpenDevices(w.State(), time.Now)}
	r.token, _ = r.pair(remote.Trust)
	start = func() (kill func()) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"REMOTE_TEST_STATE=" + w.State(), "REMOTE_TEST_ROOT=" + w.Root}
		for key, value := range w.Env {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		editor := fake.Connect(t, out, in)
		r.Editor = editor
		editor.Open(w.Root, nil)
		editor.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
		return sync.OnceFunc(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			editor.Close()
		})
	}
	return r, start
}

// A client that comes back after the daemon was killed in the middle of a turn gets exactly the
// rest of what is stored, and the end of the turn.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	const n = 2000
	r, start := killableRig(t, pulses(n, "2ms"))
	kill := start()
	defer func() { kill() }()
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	from, _ := page.await(0, "chat:content-received", "0123")
	for range 20 { // events, so that the kill comes at an event of its own
		from, _ = page.await(from+1, "chat:content-received", "0123")
	}
	kill()
	<-page.over
	shown := page.all()
	kill = start()
	again := r.events(r.token, shown[len(shown)-1].id)
	again.await(0, "session:connected", `"resumedChats":["c"]`)
	again.await(0, "chat:content-received", `"state":"finished"`)
	again.await(0, "chat:content-received", "Interrupted")
	got := text(shown) + text(again.all())
	if len(text(shown)) == 0 || !strings.HasPrefix(pulseText(n), got) || len(got) == len(pulseText(n)) {
		t.Errorf("%d bytes were shown, then %q", len(text(shown)), text(again.all()))
	}
	_, loaded := r.do("GET", "/chats/c", nil)
	if !strings.Contains(loaded, `"text":"`+got+`"`) {
		t.Errorf("the chat has something else than the %d bytes that were shown", len(got))
	}
}

// The daemon is killed again and again at random moments of a turn, while two pages and an editor
// watch. Each page that comes back with its last id gets what is stored, nothing twice, and so does
// the editor when it opens the chat. REMOTE_KILLS is how often.
func TestManyKills(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	kills := 5
	if text := os.Getenv("REMOTE_KILLS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	// The model counts, so that a piece that is lost and one that comes twice do not make up for it.
	var words strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&words, "w%d ", i)
	}
	r, start := killableRig(t, "turns: []\ndefault: {steps: [{text: '"+words.String()+"', delay: 1ms}]}\n")
	kill := start()
	defer func() { kill() }()
	second, _ := r.pair(remote.Watch)
	tokens := [2]string{r.token, second}
	var last, got [2]string
	for n := range kills {
		var pages [2]*events
		for i, token := range tokens {
			pages[i] = r.events(token, last[i])
			pages[i].await(0, "session:connected")
		}
		if n > 0 {
			r.Call("chat/open", object{"chatId": "c"})
		}
		if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
			t.Fatal(status, result)
		}
		for _, page := range pages {
			page.await(0, "chat:content-received", "w1 ")
		}
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		kill()
		for i, page := range pages {
			<-page.over
			list := page.all()
			got[i] += text(list)
			last[i] = list[len(list)-1].id
		}
		kill = start()
	}
	_, stored := r.do("GET", "/chats/c", nil)
	var c struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(stored), &c); err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, m := range c.Messages {
		var parts []struct{ Text string }
		if m.Role == "assistant" && json.Unmarshal(m.Content, &parts) == nil {
			want.WriteString(parts[0].Text)
		}
	}
	for i, token := range tokens {
		page := r.events(token, last[i])
		page.await(0, "session:connected", `"resumedChats":["c"]`)
		page.await(0, "chat:content-received", `"state":"finished"`)
		if got[i] += text(page.all()); got[i] != want.String() || got[i] == "" {
			t.Errorf("page %d was shown %d bytes, and %d are stored", i, len(got[i]), want.Len())
		}
	}
	mark := r.Mark()
	r.Call("chat/open", object{"chatId": "c"})
	var shown strings.Builder
	for _, m := range r.Since(mark) {
		var p struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if m.Method == "chat/contentReceived" && json.Unmarshal(m.Params, &p) == nil && p.Role == "assistant" && p.Content.Type == "text" {
			shown.WriteString(p.Content.Text)
		}
	}
	if shown.String() != want.String() {
		t.Errorf("the editor was shown %d bytes, and %d are stored", shown.Len(), want.Len())
	}
}
