package main

import (
	"bytes"
	"context"
	"io"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/llm"
)

const golden = "../../esrp/testdata/golden/"

// call runs the program.
func call(stdin string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(context.Background(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "doc.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

const (
	response = `{"esrp_version":"1.0","request_id":"550e8400-e29b-41d4-a716-446655440000","status":"succeeded"}`
	noInputs = `{"esrp_version":"1.0","request_id":"550e8400-e29b-41d4-a716-446655440000","timestamp":"2025-01-01T00:00:00Z","caller":{"system":"s"},"target":{"service":"a","operation":"b"},"inputs":[]}`
	floats   = `{"a":[0.5]}`
)

// withField is a valid request with one more member.
func withField(field string) string {
	return strings.Replace(noInputs, `"inputs":[]`, field+`,"inputs":[{"name":"n","content_type":"text/plain","data":"","encoding":"utf-8"}]`, 1)
}

// TestOutputs: what the reference prints, and where (esrp.md 10).
func TestOutputs(t *testing.T) {
	for _, c := range []struct {
		name, stdin string
		args        []string
		want        string
	}{
		{"validate", "", []string{"validate", golden + "simple_tts.json"}, "Valid ESRP request\n"},
		{"validate strictly", "", []string{"validate", "--strict", golden + "image_generation.json"}, "Valid ESRP request\n"},
		{"validate a response", response, []string{"validate", "--response", "-"}, "Valid ESRP response\n"},
		{"the short flag", response, []string{"validate", "-r", "-"}, "Valid ESRP response\n"},
		{"canonicalize", "{ \"b\": [1, 2],\n \"a\": \"é<\" }\n", []string{"canonicalize", "-"}, `{"a":"é<","b":[1,2]}`},
		{"typed response", response, []string{"canonicalize", "--typed", "-"}, response},
		{"hash", "", []string{"hash", golden + "simple_tts.json"}, "228ac6008ea5e210af420d4d49a0339fa3bd477610a81babead0fc3dc8aa5bf1\n"},
		{"typed hash", "", []string{"hash", "--typed", golden + "simple_tts.json"}, "91172c2b5d97f75d0256f685d5396fbb6556c6312f0ca6ad32e3f9cadee19c63\n"},
		{"payload hash", "", []string{"hash", "--payload", golden + "simple_tts.json"}, "cde91f8b19825e1ad63fe636613c021497e9c1312dd1772eeecdccc7865d351f\n"},
		{"parse", "", []string{"parse", "workspace://ns/a/b.txt"}, "Namespace: ns\nPath: a/b.txt\nFull URI: workspace://ns/a/b.txt\n"},
		{"version", "", []string{"--version"}, "esrp 0.1.0\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if code, out, errs := call(c.stdin, c.args...); code != 0 || out != c.want || errs != "" {
				t.Errorf("%d\n%q, want\n%q\n%s", code, out, c.want, errs)
			}
		})
	}
}

// TestFailures: nothing on standard output, the step and its cause on standard error.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name  string
		stdin string
		args  []string
		code  int
		want  []string
	}{
		{"no file", "", []string{"validate", "/nowhere/x.json"}, 1, []string{"Error: Failed to read file", "\n\nCaused by:\n    "}},
		{"no JSON", "{", []string{"validate", "-"}, 1, []string{"Failed to parse - as ESRP request", "line 1"}},
		{"no request", "{}", []string{"validate", "-"}, 1, []string{"as ESRP request", "esrp_version: missing field"}},
		{"a key twice in params", withField(`"params":{"a":[{"b":1,"b":2}]}`), []string{"validate", "-"}, 1, []string{"as ESRP request", "params.a[0].b: duplicate field"}},
		{"an escaped key twice", withField(`"params":{"a":1,"\u0061":2}`), []string{"validate", "-"}, 1, []string{"params.a: duplicate field"}},
		{"an empty key twice", withField(`"params":{"":{"":1,"":2}}`), []string{"validate", "-"}, 1, []string{"duplicate field"}},
		{"a key twice in metadata", strings.Replace(withField(`"x":1`), `"encoding"`, `"metadata":{"k":1,"k":1},"encoding"`, 1), []string{"validate", "-"}, 1, []string{"inputs[0].metadata.k: duplicate field"}},
		{"a key twice in details", strings.Replace(response, `"succeeded"`, `"failed","error":{"code":"UNKNOWN","message":"m","details":{"d":1,"d":2}}`, 1), []string{"validate", "-r", "-"}, 1, []string{"as ESRP response", "error.details.d: duplicate field"}},
		{"no response", "{}", []string{"validate", "-r", "-"}, 1, []string{"as ESRP response"}},
		{"invalid request", noInputs, []string{"validate", "-"}, 1, []string{"Error: Request validation failed\n", "empty inputs"}},
		{"invalid response", strings.Replace(response, "succeeded", "failed", 1), []string{"validate", "-r", "-"}, 1, []string{"Response validation failed", "missing error"}},
		{"canonicalize no JSON", "[1,]", []string{"canonicalize", "-"}, 1, []string{"Failed to parse - as JSON"}},
		{"canonicalize a float", floats, []string{"canonicalize", "-"}, 1, []string{"Failed to generate canonical JSON", "0.5"}},
		{"hash a float", floats, []string{"hash", "-"}, 1, []string{"Failed to compute hash"}},
		{"payload of nothing", "{}", []string{"hash", "--payload", "-"}, 1, []string{"as ESRP request"}},
		{"scheme", "", []string{"parse", "http://x/y"}, 1, []string{"Failed to parse workspace URI"}},
		{"traversal", "", []string{"parse", "workspace://ns/../etc"}, 1, []string{"Failed to parse workspace URI", "traversal"}},
		{"out of the base", "", []string{"parse", "workspace://../x"}, 1, []string{"Failed to parse workspace URI"}},
		{"escaped traversal", "", []string{"parse", "workspace://n/%2e%2e/x"}, 1, []string{"traversal"}},
		{"nothing", "", nil, 2, []string{"Usage"}},
		{"unknown command", "", []string{"frobnicate"}, 2, []string{"Usage", "frobnicate"}},
		{"unknown flag", "", []string{"hash", "--frob", "x"}, 2, []string{"Usage", "frob"}},
		{"a file too many", "", []string{"hash", "a", "b"}, 2, []string{"Usage"}},
		{"a key without NATS", "", []string{"serve", "--nkey", "x"}, 2, []string{"--nkey and --tls-ca need --nats"}},
		{"a key that is missing", "", []string{"worker", "--nats", "nats://127.0.0.1:1", "--nkey", "missing.nk"}, 1, []string{"Failed to work", "missing.nk"}},
		{"two forms", "", []string{"hash", "--typed", "--payload", "-"}, 2, []string{"Usage", "typed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := call(c.stdin, c.args...)
			if code != c.code || out != "" {
				t.Errorf("code %d, output %q", code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in\n%s", want, errs)
				}
			}
		})
	}
}

// Keys are secret, and existing ones are not replaced.
func TestKeys(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	code, out, errs := call("", "keys", dir)
	if code != 0 || !strings.Contains(out, filepath.Join(dir, "accounts.conf")) {
		t.Errorf("%d %s%s", code, out, errs)
	}
	for _, name := range []string{"server.nk", "worker.nk", "accounts.conf"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if code, _, errs := call("", "keys", dir); code != 1 || !strings.Contains(errs, "exists") {
		t.Errorf("%d %s", code, errs)
	}
}

// A service that would accept callers without a token is not started.
func TestServeNeedsAToken(t *testing.T) {
	t.Setenv(tokenVariable, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // if it starts, it ends
	t.Chdir(t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"serve", "--listen", "127.0.0.1:0"}, strings.NewReader(""), &out, &errs); code != 1 || !strings.Contains(errs.String(), "ESRP_TOKEN is not set") {
		t.Errorf("%d %s%s", code, out.String(), errs.String())
	}
}

// Reading standard input ends when the program is interrupted.
func TestInterruptWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	stdin, writer := io.Pipe()
	defer writer.Close()
	var stderr strings.Builder
	done := make(chan int)
	go func() { done <- run(ctx, []string{"hash", "-"}, stdin, io.Discard, &stderr) }()
	cancel()
	if code := <-done; code != usage.Interrupted || stderr.String() != "esrp: interrupted\n" {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}

func TestHelpListsTheCommands(t *testing.T) {
	code, out, _ := call("", "--help")
	for _, want := range []string{"validate", "canonicalize", "hash", "parse", "Usage"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%d: %s is not in\n%s", code, want, out)
		}
	}
}

// Reading the output gives the same output again.
func TestCanonicalizeTwice(t *testing.T) {
	_, once, _ := call("", "canonicalize", golden+"image_generation.json")
	code, twice, errs := call("", "canonicalize", file(t, once))
	if code != 0 || once == "" || once != twice {
		t.Errorf("%d, %s\n%s\n%s", code, errs, once, twice)
	}
}

// Without a state directory there is no journal that could be called valid.
func TestJournalWithoutStateDirectory(t *testing.T) {
	needs.POSIX(t)
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	for _, args := range [][]string{{"journal", "verify"}, {"journal", "show"}, {"replay", "c"}} {
		if code, out, errs := call("", args...); code == 0 || out != "" || !strings.Contains(errs, "set HOME, XDG_STATE_HOME or --state") {
			t.Errorf("%q: %d %q %q", args, code, out, errs)
		}
	}
}

// TestJournalCommands: a missing journal is valid and empty, a damaged one is named, and records
// are printed unchanged.
func TestJournalCommands(t *testing.T) {
	state := t.TempDir()
	if code, out, errs := call("", "journal", "verify", "--state", state); code != 0 || !strings.Contains(out, "Valid journal: 0 lines") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if _, err := os.Stat(filepath.Join(state, "journal")); err == nil {
		t.Error("verify made a journal")
	}
	j := journal.New(state, journal.Options{})
	m := j.Model(echo{}, "p/m")
	for range m.Stream(t.Context(), llm.Request{
		Purpose: llm.PurposeTurn, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "say it"}}}}, Origin: llm.Origin{Chat: "chat-1", Turn: "t"},
	}) {
	}
	j.Close()
	code, exported, errs := call("", "journal", "export", "--state", state)
	lines := strings.Split(strings.TrimSuffix(exported, "\n"), "\n")
	if code != 0 || len(lines) != 2 {
		t.Fatalf("%d %q %q", code, exported, errs)
	}
	if _, hash, _ := call(lines[0], "hash", "-"); !strings.Contains(lines[1], `"prev":"`+strings.TrimSpace(hash)+`"`) {
		t.Errorf("the second line does not name the first, %s: %s", hash, lines[1])
	}
	if _, again, _ := call(lines[1], "canonicalize", "-"); again != lines[1] {
		t.Errorf("not canonical: %s", lines[1])
	}
	for args, want := range map[string]string{
		"journal verify": "Valid journal: 2 lines in 1 segments, 2 bodies, 0 erased\n", "journal show": "chat-1  1 model calls, 0 tool calls\n",
		"journal show chat-1": "said", "journal show chat": "said", "replay chat": "Equal: 1 turns, 1 model calls, 0 tool calls\n",
	} {
		if code, out, errs := call("", append(strings.Fields(args), "--state", state)...); code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %d %q %q", args, code, out, errs)
		}
	}
	segment := filepath.Join(state, "journal", "00000000000000000001.jsonl")
	if err := os.WriteFile(segment, []byte(strings.Replace(exported, "p/m", "p/n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"journal verify": "line 1", "journal show d": "not on record", "replay chax": "not on record; esrp journal show lists", "replay cha": "needs at least 4 characters",
	} {
		if code, out, errs := call("", append(strings.Fields(args), "--state", state)...); code != exitData || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%s: %d %q %q", args, code, out, errs)
		}
	}
	if code, _, errs := call("", "journal"); code != usage.ExitCode || !strings.Contains(errs, "Usage") {
		t.Errorf("journal alone: %d %q", code, errs)
	}
}

// echo answers everything with the same text.
type echo struct{}

func (echo) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Kind: llm.TextDelta, Text: "said"}, nil) && yield(llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}, nil)
	}
}
