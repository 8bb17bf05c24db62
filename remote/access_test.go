package remote_test

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/remote"
)

// Each route answers what is wrong with a request with the right status and an error object.
func TestRoutes(t *testing.T) {
	t.Parallel()
	servers := object{"mcpServers": object{"a b": object{"command": "none", "disabled": true}}}
	r := newRig(t, "turns:\n  - steps: [{text: One.}]\n  - steps: [{text: Two.}]\n", servers, nil)
	page := r.events(r.token, "")
	r.do("POST", "/chats/c/prompt", object{"message": "hi"})
	page.await(0, "chat:content-received", `"state":"finished"`)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code         string // or a part of the message
	}{
		{"GET", "/health", nil, 200, ""},
		{"GET", "/session", nil, 200, ""},
		{"GET", "/jobs", nil, 200, ""},
		{"GET", "/jobs/job%20one/output", nil, 200, ""},
		{"POST", "/jobs/none/kill", nil, 200, ""},
		{"GET", "/nothing", nil, 404, "not_found"},
		{"PUT", "/chats/c", nil, 404, "not_found"},
		{"GET", "/chats/c/prompt", nil, 404, "not_found"},
		{"GET", "/chats/other", nil, 404, "chat_not_found"},
		{"GET", "/chats/a%20b", nil, 404, "chat_not_found"},
		{"GET", "/chats/c?limit=1", nil, 200, ""},
		{"GET", "/chats/c?limit=x", nil, 400, "invalid_request"},
		{"GET", "/chats/c?before=x", nil, 400, "invalid_request"},
		{"GET", "/chats/c?before=lastCompaction", nil, 409, "cursor_expired"},
		{"POST", "/chats/c/prompt", `{"message": "x",}`, 400, "byte 17"},
		{"POST", "/chats/c/clear", `[]`, 400, "JSON object"},
		{"POST", "/chats/c/prompt", object{}, 400, "message is missing"},
		{"POST", "/chats/c/prompt", object{"message": 1}, 400, "message is not a string"},
		{"POST", "/chats/a%20b/prompt", object{"message": "x"}, 400, "invalid_request"},
		{"POST", "/chats/c/prompt", `{"message": "` + strings.Repeat("x", 17<<20) + `"}`, 413, "too_large"},
		{"POST", "/chats/c/stop", nil, 409, "chat_wrong_status"},
		{"POST", "/chats/other/stop", nil, 404, "chat_not_found"},
		{"POST", "/chats/c/steer", object{"message": "x"}, 409, "chat_wrong_status"},
		{"POST", "/chats/c/approve/x", object{"save": "forever"}, 400, "invalid_request"},
		{"POST", "/chats/c/reject/x", nil, 404, "tool_call_not_found"},
		{"POST", "/chats/c/rollback", nil, 400, "invalid_request"},
		{"POST", "/chats/c/model", object{}, 400, "invalid_request"},
		{"POST", "/chats/c/model", object{"model": "mock/n"}, 204, ""},
		{"POST", "/chats/c/model", object{"model": "mock/none"}, 400, "unknown model mock/none"},
		{"POST", "/chats/c/model", object{"model": "none/n"}, 400, "no provider none"},
		{"POST", "/chats/c/model", object{"model": "mock/n", "variant": "none"}, 400, `no variant "none"`},
		{"POST", "/chats/c/model", object{"model": "mock/m", "variant": "high"}, 204, ""},
		{"POST", "/chats/c/variant", object{"variant": "low"}, 204, ""},
		{"POST", "/chats/c/variant", object{"variant": "none"}, 400, `no variant "none"`},
		{"POST", "/chats/c/agent", object{"agent": "plan"}, 204, ""},
		{"POST", "/chats/c/agent", object{"agent": "none"}, 400, `no agent "none"`},
		{"POST", "/chats/other/agent", object{"agent": "plan"}, 404, "chat_not_found"},
		{"POST", "/chats/c/flag", object{"contentId": "x"}, 400, "invalid_request"},
		{"POST", "/trust", object{}, 400, "trust is missing"},
		{"POST", "/trust", object{"trust": "yes"}, 400, "trust is not true or false"},
		{"POST", "/trust", object{"trust": true}, 200, ""},
		{"POST", "/answer", object{"requestId": "x", "answer": "y"}, 404, "question_not_found"},
		{"POST", "/answer", object{"requestId": 1}, 400, "invalid_request"},
		{"POST", "/mcp", object{}, 400, "invalid_request"},
		{"POST", "/mcp", object{"name": "new", "command": "none", "disabled": true}, 200, ""},
		{"POST", "/mcp", object{"name": "new", "command": "other"}, 400, "an MCP server new already"},
		{"POST", "/mcp/a%20b/stop", nil, 204, ""},
		{"POST", "/mcp/none/start", nil, 404, "mcp_server_not_found"},
		{"POST", "/mcp/none/stop", nil, 404, "mcp_server_not_found"},
		{"POST", "/mcp/none/connect", nil, 404, "mcp_server_not_found"},
		{"POST", "/mcp/none/logout", nil, 404, "mcp_server_not_found"},
		{"POST", "/mcp/none/enable", nil, 404, "mcp_server_not_found"},
		{"POST", "/mcp/none/disable", nil, 404, "mcp_server_not_found"},
		{"DELETE", "/mcp/none", nil, 404, "mcp_server_not_found"},
		{"DELETE", "/mcp/a%20b", nil, 400, "where it cannot be removed"},
		{"DELETE", "/mcp/new", nil, 204, ""},
		{"POST", "/chats/c/clear", nil, 204, ""},
	} {
		status, body := r.do(c.method, c.path, c.body)
		var e struct {
			Error struct{ Code, Message string }
		}
		_ = json.Unmarshal([]byte(body), &e)
		if status != c.status || !strings.Contains(e.Error.Code+" "+e.Error.Message, c.code) || (c.code != "") != (e.Error.Message != "") {
			t.Errorf("%s %s %.40v: %d %.200s", c.method, c.path, c.body, status, body)
		}
	}
	page.await(0, "trust:updated", `"trust":true`)
	page.await(0, "chat:cleared", `"c"`)
}

// Requests for other hosts and from other origins are refused before anything else; pages that may
// call get exactly their origin back.
func TestHostsAndOrigins(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns: []\n", object{"remote": object{"hosts": []string{"box.example"}, "origins": []string{"https://app.example"}}}, nil)
	at := func(format string) string { return strings.ReplaceAll(format, "PORT", fmt.Sprint(r.port)) }
	for _, c := range []struct {
		host, origin, method string
		status               int
	}{
		{"127.0.0.1:PORT", "", "GET", 200},
		{"LOCALHOST.:PORT", "", "GET", 200},
		{"eca.localhost:PORT", "", "GET", 200},
		{"[::1]:PORT", "", "GET", 200},
		{"box.example", "", "GET", 200},
		{"box.example", "https://box.example", "GET", 200},
		{"evil.example", "", "GET", 403},
		{"evil.example:PORT", "", "GET", 403},
		{"evil.example.:PORT", "", "GET", 403},
		{"192.168.7.7:PORT", "", "GET", 403},
		{"127.0.0.1.evil.example", "", "GET", 403},
		{"evil.example", "https://evil.example", "GET", 403},
		{"127.0.0.1:PORT", "https://app.example", "GET", 200},
		{"127.0.0.1:PORT", "http://127.0.0.1:PORT", "GET", 200},
		{"127.0.0.1:PORT", "http://127.0.0.1:1", "GET", 403},
		{"127.0.0.1:PORT", "http://app.example", "GET", 403},
		{"127.0.0.1:PORT", "https://app.example.evil", "GET", 403},
		{"127.0.0.1:PORT", "https://evil.app.example", "GET", 403},
		{"127.0.0.1:PORT", "https://app.example:444", "GET", 403},
		{"127.0.0.1:PORT", "https://web.eca.dev", "GET", 403}, // it is not listed
		{"127.0.0.1:PORT", "null", "GET", 403},
		{"127.0.0.1:PORT", "https://app.example", "OPTIONS", 204},
		{"127.0.0.1:PORT", "https://other.example", "OPTIONS", 403},
	} {
		req := r.request("", c.method, "/api/v1/health", nil)
		req.Host = at(c.host)
		if c.origin != "" {
			req.Header.Set("Origin", at(c.origin))
			req.Header.Set("Access-Control-Request-Method", "POST")
			req.Header.Set("Access-Control-Request-Private-Network", "true")
		}
		status, body, header := r.send(req)
		allowed := header.Get("Access-Control-Allow-Origin")
		if status != c.status || c.status < 300 && allowed != at(c.origin) || c.status >= 300 && allowed != "" {
			t.Errorf("%s from %q: %d, %q, %s", c.host, c.origin, status, allowed, body)
		}
		if c.status < 300 && c.origin != "" && header.Get("Vary") != "Origin" {
			t.Errorf("%s from %q: Vary is %q", c.host, c.origin, header.Get("Vary"))
		}
		if c.status == 204 && header.Get("Access-Control-Allow-Private-Network") != "true" {
			t.Errorf("%s: %v", c.origin, header)
		}
	}
	for request, status := range map[string]string{
		"HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example": "400",
		"HTTP/1.1\r\nHost: ": "403",
		"HTTP/1.1":           "400",
		"HTTP/1.0":           "403",
	} {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.port))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET /api/v1/health %s\r\nConnection: close\r\n\r\n", request)
		if answer, _ := io.ReadAll(conn); !strings.HasPrefix(strings.TrimLeft(string(answer), "HTP/1.0"), " "+status) {
			t.Errorf("%q: %.100s", request, answer)
		}
		_ = conn.Close()
	}
}

// Guessing is throttled, and does not lock out paired devices. No answer and no log has a secret.
func TestGuessing(t *testing.T) {
	t.Parallel()
	const password = "a-long-password"
	r := newRig(t, "turns: []\n", object{"remote": object{"password": password}}, nil)
	get := func(token, path string) (int, string) {
		status, body, header := r.send(r.request(token, "GET", path, nil))
		return status, body + fmt.Sprint(header)
	}
	if status, _ := get(password, "/api/v1/session"); status != 200 {
		t.Errorf("the password: %d", status)
	}
	said := ""
	for i := range 1000 {
		status, body := get(fmt.Sprint("guess", i), "/api/v1/session")
		said += body
		if want := map[bool]int{true: 401, false: 429}[i < 10]; status != want {
			t.Errorf("guess %d: %d", i, status)
		}
	}
	if status, body := get(password, "/api/v1/session"); status != 429 || !strings.Contains(body, "Retry-After") {
		t.Errorf("the password while its address is throttled: %d", status)
	}
	for _, path := range []string{"/api/v1/session", "/api/v1/chats", "/", "/app.js", "/api/v1/health"} {
		status, body := get(r.token, path)
		said += body
		if status != 200 {
			t.Errorf("%s as a paired device: %d", path, status)
		}
	}
	status, body, _ := r.send(r.request("", "POST", "/session", object{"token": "guess"}))
	if said += body; status != 403 {
		t.Errorf("the page with a guess: %d", status)
	}
	if status, _, _ := r.send(r.request("", "POST", "/session", object{"token": password})); status != 403 {
		t.Errorf("the page with the password while its address is throttled: %d", status)
	}
	r.Call("chat/prompt", object{"chatId": "c", "message": "/remote"})
	r.Await(0, "how to connect", fake.Content("text", "Open http://eca.localhost:"))
	r.Call("chat/prompt", object{"chatId": "c", "message": "/doctor"})
	r.Await(0, "the check-up", fake.Content("text", "can be reached from this machine only"))
	export := filepath.Join(r.world.Root, "export.md")
	r.Call("chat/prompt", object{"chatId": "c", "message": "/export " + export})
	r.Await(0, "the export", fake.Content("text", "export.md"))
	everything := said + r.log.String() + r.Conversation()
	for _, dir := range []string{r.world.State(), r.world.Root} { // with the stored events
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			everything += path + string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, searched := range []string{"remote.json", "chats.db", "export.md", "can be reached from"} {
		if !strings.Contains(everything, searched) {
			t.Errorf("%s is not searched", searched)
		}
	}
	for _, secret := range []string{r.token, password} {
		if strings.Contains(everything, secret) {
			t.Errorf("a secret is in an answer, the log or the file")
		}
	}
	if info, err := os.Stat(filepath.Join(r.world.State(), "remote.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

// After ten wrong passwords from one address, or sixty from all, the right password is refused too
// until a minute has passed. A paired device is not refused.
func TestGuessingByTheClock(t *testing.T) {
	t.Parallel()
	now, dir := time.Now(), t.TempDir()
	clock := func() time.Time { return now }
	cfg := &config.Config{}
	cfg.Remote.Password = "a-long-password"
	f := remote.New(remote.Options{
		Config: func() *config.Loaded { return &config.Loaded{Config: cfg} }, StateDir: dir, Now: clock, Log: slog.New(slog.DiscardHandler),
	})
	paired, _, err := remote.OpenDevices(dir, clock).Pair("phone", remote.Control)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(address string, want bool) {
		t.Helper()
		if got := f.Admit(address+":1", cfg.Remote.Password); got != want {
			t.Errorf("the password from %s: %v", address, got)
		}
		if !f.Admit(address+":1", paired) {
			t.Errorf("the paired device at %s was refused", address)
		}
	}
	guess := func(address string) {
		t.Helper()
		if f.Admit(address+":1", "guess") {
			t.Error("Admit accepted a wrong password")
		}
	}
	for range 9 {
		guess("192.0.2.0")
	}
	expect("192.0.2.0", true)
	guess("192.0.2.0")
	expect("192.0.2.0", false)
	expect("192.0.2.1", true)
	now = now.Add(time.Minute - 1)
	expect("192.0.2.0", false)
	now = now.Add(1)
	expect("192.0.2.0", true)
	for i := range 59 {
		guess(fmt.Sprint("192.0.2.", i/10))
	}
	expect("192.0.2.9", true)
	guess("192.0.2.5")
	expect("192.0.2.9", false)
	now = now.Add(time.Minute)
	expect("192.0.2.9", true)
}

// A revoked device loses its streams at once. One that may only watch can change nothing, also not
// by other spellings; its prompt is shown with the reason.
func TestRights(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns: []\n", nil, nil)
	watcher, dev := r.pair(remote.Watch)
	control, _ := r.pair(remote.Control)
	page := r.events(watcher, "")
	page.await(0, "session:connected", `"rights":"watch"`)
	call := func(token, method, path string, body any) int {
		status, _, _ := r.send(r.request(token, method, "/api/v1"+path, body))
		return status
	}
	for _, path := range []string{"POST /chats/c/stop", "POST /chats/c/approve/x", "POST /trust", "DELETE /chats/c", "POST /mcp", "POST /chats/c/update", "POST /chats/c/clear"} {
		method, path, _ := strings.Cut(path, " ")
		if status := call(watcher, method, path, object{"trust": true}); status != 403 {
			t.Errorf("%s %s as a watcher: %d", method, path, status)
		}
	}
	for _, path := range []string{"POST /trust", "POST /mcp", "DELETE /mcp/x", "POST /mcp/x/start"} {
		method, path, _ := strings.Cut(path, " ")
		if status := call(control, method, path, object{"trust": true}); status != 403 {
			t.Errorf("%s %s with control: %d", method, path, status)
		}
	}
	if status := call(watcher, "POST", "/chats/c/prompt", object{"message": "do it"}); status != 403 {
		t.Errorf("a watcher's prompt: %d", status)
	}
	page.await(0, "chat:content-received", "do it")
	page.await(0, "chat:content-received", "may only watch")
	desk := r.events(control, "")
	desk.await(0, "session:connected")
	if status := call(control, "POST", "/chats/c/prompt", object{"message": "/budget chat off"}); status != 403 {
		t.Errorf("a command: %d", status)
	}
	desk.await(0, "chat:content-received", "/budget chat off")
	desk.await(0, "chat:content-received", "may not use commands")
	if _, list := r.do("GET", "/chats", nil); list != "[]" {
		t.Errorf("a refused prompt made a chat: %s", list)
	}
	began := time.Now()
	if n, err := r.devices.Revoke(dev.ID); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	select {
	case <-page.over:
	case <-time.After(time.Minute):
		t.Error("the stream of a revoked device did not end")
	}
	t.Logf("the stream ended after %s", time.Since(began))
	if status := call(watcher, "GET", "/session", nil); status != 401 {
		t.Errorf("a revoked device: %d", status)
	}
}

// The method of a message, whether it grants more, and what the command that it calls may change
// decide which rights it needs.
func TestAllow(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns: []\n", nil, nil)
	r.Call("chat/prompt", object{"chatId": "7", "message": "/login"}) // asks which provider
	for _, c := range []struct {
		method, params string
		needed         remote.Rights
	}{
		{"chat/open", `{}`, remote.Watch},
		{"host/attach", ``, remote.Watch},
		{"chat/prompt", `{"message":"x"}`, remote.Control},
		{"", ``, remote.Control},
		{"chat/prompt", `{"message":"x","trust":false}`, remote.Control},
		{"chat/prompt", `{"message":"x","trust":true}`, remote.Trust},
		{"chat/prompt", `{"message":"x","tru-st":true,"trust":false}`, remote.Trust},
		{"chat/prompt", `{"message":"x","TRUST":"true"}`, remote.Trust},
		{"chat/prompt", `{"chatId":"c","message":"/login mock"}`, remote.Trust},
		{"chat/prompt", `{"message":"x","MES_SAGE":" \t/login"}`, remote.Trust},
		{"chat/prompt", `{"message":"/plugin-install x"}`, remote.Trust},
		{"chat/prompt", `{"message":"/export /tmp/x"}`, remote.Trust},
		{"chat/prompt", `{"message":"/budget\nchat off"}`, remote.Trust},
		{"chat/prompt", `{"message":"/budget"}`, remote.Control},
		{"chat/prompt", `{"message":"/plugins"}`, remote.Control},
		{"chat/prompt", `{"message":"/rename /login"}`, remote.Control},
		{"chat/prompt", `{"message":"/usr/bin/login"}`, remote.Control},
		{"chat/prompt", `{"chatId":"7","message":"mock"}`, remote.Trust}, // answers /login
		{"chat/prompt", `{"chat_id":7,"message":"mock"}`, remote.Trust},
		{"chat/promptSteer", `{"chatId":"c","message":"/login"}`, remote.Control}, // for the model
		{"chat/toolCallApprove", `{"toolCallId":"x","save":"session"}`, remote.Trust},
		{"chat/toolCallApprove", `{"toolCallId":"x","s_ave":"session"}`, remote.Trust},
		{"mcp/addServer", `{}`, remote.Trust},
		{"providers/login", `{}`, remote.Trust},
		{"made/up", `{}`, remote.Trust},
	} {
		if got := r.face.Needs(c.method, []byte(c.params)); got != c.needed {
			t.Errorf("%s %s: %s", c.method, c.params, got)
		}
	}
}

// Before the server listens, /remote says that it starts.
func TestStatusBeforeTheStart(t *testing.T) {
	cfg := &config.Config{}
	cfg.Remote.Enabled = true
	f := remote.New(remote.Options{Config: func() *config.Loaded { return &config.Loaded{Config: cfg} }, StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if got := f.Status(); got != "The remote server is starting. Ask again in a moment." {
		t.Error(got)
	}
}

// A token must be used in time; then it works until it is revoked.
func TestPairing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	dir := t.TempDir()
	clock := func() time.Time { return now }
	devices := remote.OpenDevices(dir, clock)
	f := remote.New(remote.Options{
		Config: func() *config.Loaded { return &config.Loaded{Config: &config.Config{}} }, StateDir: dir, Now: clock, Log: slog.New(slog.DiscardHandler),
	})
	early, _, err := devices.Pair("early", remote.Control)
	if err != nil {
		t.Fatal(err)
	}
	late, _, err := devices.Pair("late", remote.Control)
	if err != nil {
		t.Fatal(err)
	}
	admit := func(token string) bool { return f.Admit("192.0.2.1:1", token) }
	if first, second := admit(early), admit(early); !first || !second || admit("") || admit(early[1:]) {
		t.Error("Admit must accept fresh tokens, and no empty or cut ones")
	}
	now = now.Add(11 * time.Minute)
	if !admit(early) || admit(late) {
		t.Error("after eleven minutes, Admit must accept the token that was used, and not the other")
	}
	list, err := devices.List()
	if err != nil || len(list) != 1 || list[0].Name != "early" || list[0].Used.IsZero() {
		t.Error(list, err)
	}
	if n, err := devices.Revoke(""); n == 0 || err != nil || admit(early) {
		t.Error("after Revoke of all devices, Admit must refuse the token", n, err)
	}
}
