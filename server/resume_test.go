package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A chat continues with the same bytes in each API: each request repeats the previous one, in the
// same process, in a new one, and after the configuration was reloaded. Prompt caches rely on this.
func TestResumeSendsTheSame(t *testing.T) {
	needs.Long(t)
	for api := range wireAPIs() {
		t.Run(api, func(t *testing.T) {
			root := fullWorkspace(t)
			first := map[string]any{"chatId": "chat-1", "message": "What is in them?", "model": api + "/m"}
			second := map[string]any{"chatId": "chat-1", "message": "Still?"}
			begin := func() *rig {
				r := newRig(t, options{model: fullConversation, root: root, providers: allAPIs(nil)})
				r.Await(0, "the start", fake.Ready())
				r.turn(t, first)
				return r
			}

			steady := begin()
			steady.turn(t, second)
			requests := steady.bodies()
			if len(requests) != 3 {
				t.Fatalf("%d requests", len(requests))
			}
			for i, body := range requests[1:] {
				before, after := wireMessages(t, requests[i]), wireMessages(t, body)
				if len(after) < len(before) {
					t.Fatalf("request %d has fewer messages than the one before it", i+2)
				}
				if diff := cmp.Diff(before, after[:len(before)]); diff != "" {
					t.Errorf("request %d does not repeat the one before it: %s", i+2, diff)
				}
				if diff := cmp.Diff(withoutMessages(t, requests[i]), withoutMessages(t, body)); diff != "" {
					t.Errorf("request %d: %s", i+2, diff)
				}
			}
			want := requests[2]
			checkGolden(t, filepath.Join("testdata", "resume", api+".json"), strings.ReplaceAll(indent(t, wireMessages(t, want)), root, "$WS"))

			r := begin()
			r.Close()
			restarted := newRig(t, options{model: fullConversation, root: root, state: r.state, providers: allAPIs(nil)})
			restarted.Await(0, "the start", fake.Ready())
			restarted.turn(t, second)
			if diff := cmp.Diff(want, restarted.bodies()[0]); diff != "" {
				t.Errorf("after a restart: %s", diff)
			}

			r = begin()
			mark := r.Mark()
			r.save(t, r.globalFile(), `{"welcomeMessage": "something else"}`)
			r.Await(mark, "the new configuration", fake.Contains("config/updated", "something else"))
			r.turn(t, second)
			if diff := cmp.Diff(want, r.bodies()[2]); diff != "" {
				t.Errorf("after the configuration changed elsewhere: %s", diff)
			}
		})
	}
}

// However a model writes the arguments of its calls, they are sent back unchanged before and after
// a restart.
func TestArgumentsAreTheSameAfterRestart(t *testing.T) {
	needs.Long(t)
	var calls []string
	for i, raw := range []string{
		`{"path": "${workspace}/a.txt"}`,
		"{\n  \"path\" : \"${workspace}/a.txt\" ,\n\t\"limit\":1.0e0\n}",
		`{"path":"${workspace}/a.txt","limit":10,"a":{"z" : [1.50,-0, 1E3 ],"b":null}}`,
		`{"path":"\\u002ftmp\\/none\\u00e9","x":"<a href='b'> & \u2028é"}`,
	} {
		calls = append(calls, fmt.Sprintf("{id: call_%d, tool: eca__read_file, rawArguments: %s}", i, strconv.QuoteToASCII(strings.ReplaceAll(raw, `\\`, `\`))))
	}
	tape := "cassette: 1\nturns:\n  - steps:\n      - {reasoning: Hm., calls: [" + strings.Join(calls, ", ") + "]}\n      - {text: Done.}\ndefault: {steps: [{text: Still.}]}\n"
	for api := range wireAPIs() {
		t.Run(api, func(t *testing.T) {
			root := fullWorkspace(t)
			second := map[string]any{"chatId": "chat-1", "message": "Still?"}
			begin := func() *rig {
				r := newRig(t, options{model: tape, root: root, providers: allAPIs(nil)})
				r.Await(0, "the start", fake.Ready())
				r.turn(t, map[string]any{"chatId": "chat-1", "message": "Read.", "model": api + "/m", "trust": true})
				return r
			}
			steady := begin()
			steady.turn(t, second)
			requests := steady.bodies()
			want := requests[len(requests)-1]
			if !strings.Contains(want, "a.txt") {
				t.Fatalf("no arguments in %s", want)
			}
			r := begin()
			r.Close()
			r.daemon.Engine().Close() // this releases the chat
			restarted := newRig(t, options{model: tape, root: root, state: r.state, providers: allAPIs(nil)})
			restarted.Await(0, "the start", fake.Ready())
			restarted.turn(t, second)
			if len(restarted.bodies()) != 1 {
				t.Fatal(restarted.Conversation())
			}
			if diff := cmp.Diff(want, restarted.bodies()[0]); diff != "" {
				t.Errorf("after a restart: %s", diff)
			}
		})
	}
}

// withoutMessages returns the rest of a request.
func withoutMessages(t *testing.T, body string) map[string]json.RawMessage {
	t.Helper()
	var out map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"messages", "input", "contents"} {
		delete(out, key)
	}
	return out
}

func indent(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkGolden compares with a file, or rewrites it with -update.
func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s does not exist: run go test ./server -run %s -update, and review the file", path, t.Name())
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
