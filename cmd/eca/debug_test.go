package main

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// answerOf gets an address, with headers in pairs.
func answerOf(t *testing.T, address string, headers ...string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// The debug page shows chats, how many of their events the client was shown, and profiles, to
// callers with its address. It shows no text of chats.
func TestDebugPage(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps: [{text: A secret answer.}]\n")
	cmd := newPlace(t, p.env()...).command("server", "--debug", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdin, stdout := startPiped(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stderr).ReadString('\n')
	found := regexp.MustCompile(`^eca: debug page: (http://127\.0\.0\.1:\d+/)([A-Z2-7]{26}/)\n$`).FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	server, page := found[1], found[1]+found[2]

	editor := fake.Connect(t, stdout, stdin)
	editor.Open(cmd.Dir, nil)
	mark := editor.Mark()
	editor.Call("chat/prompt", map[string]any{"chatId": "a-chat", "message": "A secret question"})
	editor.Await(mark, "the answer", fake.Finished())
	status, text := answerOf(t, page)
	for end := time.Now().Add(time.Minute); !regexp.MustCompile(`\na-chat +\d+ +\d+ +0\n`).MatchString(text) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, text = answerOf(t, page) // the client has the messages that the view is about to count
	}
	for _, want := range []string{`goroutines, `, `Open chats: 1\n`, `\na-chat +idle +\d+ +openai/`, `Views of the client: 1\n`, `\na-chat +\d+ +\d+ +0\n`, `debug/pprof/heap\n`} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s is not in: %s", want, text)
		}
	}
	if status != http.StatusOK || strings.Contains(text, "secret") {
		t.Errorf("%d: %s", status, text)
	}

	if status, text := answerOf(t, page+"debug/pprof/goroutine?debug=2"); status != http.StatusOK || !strings.Contains(text, "goroutine 1 [") {
		t.Errorf("%d: %s", status, text)
	}
	for path, want := range map[string]int{
		"debug/pprof/heap": 200, "debug/pprof/profile?seconds=0.05": 200, "debug/pprof/": 200,
		"debug/pprof/profile?seconds=x": 400, "debug/pprof/profile?seconds=NaN": 400, "debug/pprof/profile?seconds=1e9": 400,
		"debug/pprof/heap?debug=x": 400, "debug/pprof/other": 404, "other": 404,
	} {
		status, text := answerOf(t, page+path)
		if status != want || want == 200 && text == "" {
			t.Errorf("%s: %d %.200q", path, status, text)
		}
	}

	for name, headers := range map[string][]string{
		"a page of another site": {"Origin", "https://evil.example"}, "a rebound name": {"Host", "evil.example"}, "a page of this machine": {"Origin", strings.TrimSuffix(server, "/")},
	} {
		if status, text := answerOf(t, page, headers...); status != http.StatusForbidden || strings.Contains(text, "a-chat") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for _, address := range []string{server, server + "debug/pprof/", server + "debug/pprof/goroutine?debug=2", server + "AAAA/"} {
		if status, text := answerOf(t, address); status != http.StatusUnauthorized || strings.Contains(text, "goroutine") {
			t.Errorf("without the token: %s: %d %.200s", address, status, text)
		}
	}
}

// An address that others could reach is refused, and without the flag the page is not served.
func TestDebugPageIsRefused(t *testing.T) {
	here := newPlace(t)
	for _, address := range []string{"0.0.0.0:0", "example.org:80", "6060", "[::]:0"} {
		_, stderr, code := runProgram(t, here, "", "server", "--debug", address)
		if code != 2 || !strings.Contains(stderr, "--debug must be an address of this machine") {
			t.Errorf("%s: %d %s", address, code, stderr)
		}
	}
	if _, stderr, code := runProgram(t, here, "", "server", "--debug="); code != 0 || strings.Contains(stderr, "debug") {
		t.Errorf("%d %s", code, stderr)
	}
}
