package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// dayTurns are the model's answers that the tests in a browser and in VS Code share.
const dayTurns = `  - user: '^hello'
    steps: [{reasoning: I should greet., text: "Hello, **world**.\n\n~~~go\nfunc main() {}\n~~~\n", usage: {input: 1000, output: 20}}]
  - user: '^edit'
    steps: [{calls: [{id: c2, tool: eca__edit_file, arguments: {path: "${workspace}/old.txt", original_content: "second", new_content: "2nd"}}]}, {text: Edited.}]
  - user: '^refuse'
    steps: [{calls: [{id: c4, tool: eca__write_file, arguments: {path: "${workspace}/refused", content: x}}]}, {text: Never said.}]
  - user: '^use another name'
    steps: [{text: Another name it is.}]
  - user: '^write'
    steps: [{calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "1"}}]}, {text: Written.}]
  - user: '^ask'
    steps: [{calls: [{id: q1, tool: eca__ask_user, arguments: {question: "Which colour?", options: [{label: Red}, {label: Green, description: like grass}]}}]}, {text: 'You said ${result:Red|Green|Blue|something}.'}]
  - user: '^endless'
    steps: [{text: "It begins and", hang: true}]
  - user: '^steady'
    steps:
      - {text: "step ", repeat: 100, delay: 20ms, calls: [{id: st, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]}
      - {text: Steady done.}
  - user: '^hurry'
    steps: [{text: Hurried.}]
  - user: '^tasks'
    steps: [{calls: [{id: k1, tool: eca__task, arguments: {op: plan, tasks: [{subject: Look, description: Look around, priority: high}, {subject: Leap, description: Jump, priority: low}]}}]}, {text: Planned.}]
  - user: '^delegate'
    steps: [{calls: [{id: s1, tool: eca__spawn_agent, arguments: {agent: general, task: "child task", activity: looking}}]}, {text: Delegated.}]
  - user: 'child task'
    steps: [{calls: [{id: s2, tool: eca__write_file, arguments: {path: "${workspace}/child.txt", content: c}}]}, {text: The child is done.}]
  - user: '^background'
    steps: [{calls: [{id: b1, tool: eca__shell_command, arguments: {command: "echo job-output; sleep 600", background: serve}}]}, {text: Started.}]
  - user: '^unauthorized'
    steps: [{error: {status: 401, message: bad key}}]
`

const webTape = `cassette: 1
turns:
  - user: '^remember'
    steps:
      - calls: [{id: r1, tool: eca__move_file, arguments: {source: "${workspace}/r1", destination: "${workspace}/r3"}}]
      - calls: [{id: r2, tool: eca__move_file, arguments: {source: "${workspace}/r4", destination: "${workspace}/r2"}}]
      - text: Remembered.
` + dayTurns + `  - user: '^slow'
    steps: [{text: "tick ", repeat: 400, delay: 30ms}]
  - user: '^hostile'
    steps: [{text: "<script>globalThis.pwned=1</script>\n\n<img src=x onerror=\"globalThis.pwned=1\"> [x](javascript:globalThis.pwned=1) [y](command:run) [https://nice.example/](https://good.example/) ![p](http://127.0.0.1:1/p.png)\n\n\u001b[31mred\u001b[0m \u202Eevil\u202C the end of it\n"}]
  - user: '^number'
    steps: [{text: A number.}]
default: {steps: [{text: There is no answer to that.}]}
`

// startWeb starts eca web and returns its first link, and the links that it prints later.
func startWeb(t testing.TB, p place, args ...string) (cmd *exec.Cmd, link string, later <-chan string) {
	t.Helper()
	cmd = p.command(append([]string{"web", "--no-open"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	links := make(chan string, 16)
	go func() {
		defer close(links)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(`http://\S+`).FindString(lines.Text()); m != "" {
				links <- m
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("eca web: %s", stderr.String())
		}
	})
	link, ok := <-links
	if !ok {
		t.Fatalf("eca web printed no link: %s", stderr.String())
	}
	return cmd, link, links
}

// webSession exchanges a link for a session.
func webSession(t testing.TB, link string) (address, session string) {
	t.Helper()
	address, token, _ := strings.Cut(link, "#token=")
	status, body := askWeb(t, "POST", address+"session", "", "", `{"token":"`+token+`"}`)
	if status != http.StatusOK {
		t.Fatalf("the link: %d %s", status, body)
	}
	var got struct{ Session string }
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	return address, got.Session
}

func askWeb(t testing.TB, method, url, host, origin, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if req.Host = host; origin != "" {
		req.Header.Set("Origin", origin)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// dialWeb connects like a page of the origin.
func dialWeb(t testing.TB, address, session, origin string) (*websocket.Conn, error) {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), address+"socket", &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		Subprotocols: []string{"eca", "session." + session}, HTTPHeader: http.Header{"Origin": {origin}},
	})
	if err == nil {
		t.Cleanup(func() { _ = conn.CloseNow() })
	}
	return conn, err
}

// attachWeb connects a page that follows chats, and lists the chats.
func attachWeb(t testing.TB, link string) *websocket.Conn {
	t.Helper()
	address, session := webSession(t, link)
	conn, err := dialWeb(t, address, session, strings.TrimSuffix(address, "/"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ ask, want string }{
		{`{"jsonrpc":"2.0","id":1,"method":"host/attach","params":{}}`, `"serverInfo":{"name":"eca"`},
		{`{"jsonrpc":"2.0","id":2,"method":"chat/list","params":{}}`, `"result":{"chats":[]}`},
	} {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(c.ask)); err != nil {
			t.Fatal(err)
		}
		for answer := ""; !strings.Contains(answer, c.want); {
			_, raw, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			answer = string(raw)
		}
	}
	return conn
}

// Callers that are not on this machine, and pages of another origin, get nothing. A page with the
// link gets the ECA server.
func TestWebGuard(t *testing.T) {
	_, link, later := startWeb(t, newPlace(t))
	address, token, _ := strings.Cut(link, "#token=")
	host := strings.Trim(strings.TrimPrefix(address, "http:"), "/")
	for _, c := range []struct{ host, origin string }{{"evil.example", ""}, {host, "https://evil.example"}, {host, "null"}, {host, "http://127.0.0.1:1"}} {
		if status, body := askWeb(t, "POST", address+"session", c.host, c.origin, `{"token":"`+token+`"}`); status != http.StatusForbidden {
			t.Errorf("host %s, origin %s: %d %s", c.host, c.origin, status, body)
		}
		if status, _ := askWeb(t, "GET", address, c.host, c.origin, ""); status != http.StatusForbidden {
			t.Errorf("the page, host %s, origin %s: %d", c.host, c.origin, status)
		}
	}
	attachWeb(t, link)
	_, session := webSession(t, <-later)
	for session, origin := range map[string]string{session: "https://evil.example", "wrong": "http://" + host} {
		if _, err := dialWeb(t, address, session, origin); err == nil {
			t.Errorf("let in from %s", origin)
		}
	}
}

func TestWebCommandLine(t *testing.T) {
	p := newPlace(t)
	_, link, _ := startWeb(t, p)
	port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(link)[1]
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--port", port}, 1, port + " is in use"},
		{[]string{"--port", "70000"}, 2, "--port must be between 0 and 65535, not 70000"},
		{[]string{"--prot", "1"}, 2, "--port"},
		{[]string{"x"}, 2, "x"},
	} {
		out, err := p.command(append([]string{"web", "--no-open"}, c.args...)...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != c.code || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v\n%s", c.args, err, out)
		}
	}
}

// Ctrl-C ends it, even with a connected page.
func TestWebEnds(t *testing.T) {
	needs.POSIX(t)
	cmd, link, later := startWeb(t, newPlace(t))
	page := attachWeb(t, link)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for {
		if _, _, err := page.Read(t.Context()); err != nil {
			break
		}
	}
	for range later { // until it closes its output
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestWebDay plays a day with the chat page in Chromium: testdata/web/day.mjs types, clicks and
// looks. ECA_WEB_PICTURES is a folder for screenshots.
func TestWebDay(t *testing.T) { playWeb(t, "day.mjs") }

// TestWebKeyboard uses each function of the page by keys alone.
func TestWebKeyboard(t *testing.T) { playWeb(t, "keys.mjs") }

// playWeb plays a script of testdata/web with eca web.
func playWeb(t *testing.T, script string) {
	t.Helper()
	needs.Long(t)
	needs.POSIX(t)
	chromium := needs.Program(t, "chromium", "chromium")
	node, modules := testkit.NodeTools(t, os.Getenv, "playwright-core", "axe-core")
	provider := newProvider(t, webTape)
	p := newPlace(t, provider.env()...)
	for name, text := range map[string]string{"old.txt": "first\nsecond\nthird\n", "r1": "1", "r4": "2"} {
		if err := os.WriteFile(filepath.Join(p.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eca, link, later := startWeb(t, p)
	given, err := json.Marshal(map[string]any{
		"link": link, "root": p.root, "origin": link[:strings.Index(link, "#")], "pid": eca.Process.Pid,
		"modules": modules, "chromium": chromium, "patience": 60_000, "pictures": os.Getenv("ECA_WEB_PICTURES"),
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "web", script), string(given))
	cmd.Env = p.env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for link := range later {
			_, _ = io.WriteString(stdin, link+"\n")
		}
	}()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // a browser that is left running has its output open
	out, err := cmd.Output()
	t.Logf("went well:\n%s", out)
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}
