package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// A late answer is lost, but does not affect others: the next call gets its own answer.
func TestLateAnswer(t *testing.T) {
	needs.POSIX(t)
	pool := proc.NewPool("", 0)
	defer pool.Close()
	// It answers nothing until it gets a reset, and then it answers the step first.
	c, err := startStdio(shell(`while read -r line; do case $line in *agent/reset*)
		echo '{"jsonrpc":"2.0","id":1,"result":{"status":"done","public_output":"late"}}'
		echo '{"jsonrpc":"2.0","id":2,"result":true}' ;; esac; done`), pool)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close(true)
	ids := &ids{}
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var failed *CallError
	if _, err := call(soon, c, ids, ecp.MethodStep, ecp.StepParams{Input: "x"}); !errors.As(err, &failed) || failed.Kind != kindTimeout {
		t.Fatalf("%v", err)
	}
	raw, err := call(t.Context(), c, ids, ecp.MethodReset, struct{}{})
	if err != nil || string(raw) != "true" {
		t.Errorf("%s, %v", raw, err)
	}
	if notes := strings.Join(c.notes(), "\n"); !strings.Contains(notes, "earlier call") {
		t.Errorf("the late answer is not noted: %s", notes)
	}
}

// readAll reads an agent's output, and returns the lines that may be answers.
func readAll(data []byte) (c *stdio, answers []string, err error) {
	c = &stdio{answers: make(chan []byte)}
	done := make(chan error, 1)
	go func() {
		done <- lineproc.Read(nil, bytes.NewReader(data), c.options())
		close(c.answers)
	}()
	for raw := range c.answers {
		answers = append(answers, string(raw))
	}
	return c, answers, <-done
}

// An agent's output is split into possible answers and stray output.
func TestLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"\n \r\n":                       "",
		"{}\r\n\r\n{\"a\":1}\n":         "{}|{\"a\":1}",
		"loading...\n[1]\n\"x\"\n{}":    "",
		"{\n\"jsonrpc\": \"2.0\",\n}\n": "", // printed over several lines
		`{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}` + "\n":     `{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}`,
		`{"jsonrpc":"2.0","id":1,"method":"log","x":NaN}` + "\n": "",
	} {
		_, got, err := readAll([]byte(text))
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("noise\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":true}\n{\"cut\""))
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":NaN}\n\xff\xfe\x00\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, got, err := readAll(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range got {
			if answer[0] != '{' || strings.Contains(answer, "\n") || !bytes.Contains(data, []byte(answer)) {
				t.Fatalf("%q of %q", answer, data)
			}
			r, mine, err := c.parseAnswer([]byte(answer), []byte("7"))
			if mine && err == nil && (r.Result == nil) == (r.Err == nil) {
				t.Fatalf("%s: %+v", answer, r)
			}
			if !mine && json.Valid([]byte(answer)) && strings.HasPrefix(answer, `{"jsonrpc":"2.0","id":7,"result":true}`) {
				t.Fatalf("%s is not taken", answer)
			}
		}
		for _, note := range c.notes() {
			if strings.ContainsAny(note, "\r\n") || len(note) > 2*maxShown {
				t.Fatalf("%q", note)
			}
		}
	})
}

// The answering event is found anywhere in a stream.
func TestEvents(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":7,"result":true}`
	for _, c := range []struct{ stream, err string }{
		{"data: " + answer + "\n\n", ""},
		{"data: " + answer + "\n", ""}, // the end of the stream ends the event
		{"data: " + answer, ""},
		{"data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":7,\"result\":true}\n\n", ""},
		{": hi\r\nid: 3\r\nevent: message\r\ndata:" + answer + "\r\n\r\n", ""},
		{"data: {\"jsonrpc\":\"2.0\",\"method\":\"progress\"}\n\ndata:\n\ndata: " + answer + "\n\n", ""},
		{"data: " + answer[:20] + "\n", "ended without an answer; it sent: events that are not JSON"},
		{"data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":true}\n\n", "the answer has the id 8, the call has 7"},
		{"data: {\"jsonrpc\":\"2.0\",\"id\":6,\"result\":true}\n\ndata: " + answer + "\n\n", ""}, // the answer to an earlier call
		{"", "ended without an answer"},
	} {
		r, err := (&httpConn{}).readEvents(strings.NewReader(c.stream), []byte("7"))
		switch {
		case c.err == "" && (err != nil || string(r.Result) != "true"):
			t.Errorf("%q: %+v, %v", c.stream, r, err)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%q: %v", c.stream, err)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":true}\n\n"))
	f.Add([]byte("data:\r\n\r\ndata: {}\n\n:c\ndata: ["))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := (&httpConn{}).readEvents(bytes.NewReader(data), []byte("7"))
		if err == nil && ((r.Result == nil) == (r.Err == nil) || !r.Answers([]byte("7"))) {
			t.Fatalf("%q: %+v", data, r)
		}
	})
}

// Python's answers with NaN are invalid JSON; the error is returned immediately, not at the time limit.
func TestNaN(t *testing.T) {
	c := &stdio{}
	for raw, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"status":"done","x":NaN}}`: "invalid character 'N' looking for beginning of value, in",
		`{"jsonrpc":"2.0","id":7,"result":{"x":-Infinity}}`:           "invalid JSON",
	} {
		if _, mine, err := c.parseAnswer([]byte(raw), []byte("7")); !mine || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v", raw, mine, err)
		}
	}
}

// A manifest's target is a shell command line: only names of files and python change in it.
func FuzzResolve(f *testing.F) {
	f.Add("python3 agent.py --x='a.py' $(ls) && ./b.sh")
	f.Fuzz(func(t *testing.T, target string) {
		p := lookup{exists: func(string) bool { return false }, inPath: func(string) bool { return false }, dir: t.TempDir()}
		if got, notes := p.resolve(target); got != target || len(notes) > 0 {
			t.Fatalf("%q became %q: %v", target, got, notes)
		}
	})
}
