package tools

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/workspace"
)

type args struct {
	Path  string   `json:"path" jsonschema:"where"`
	Limit int      `json:"limit,omitempty"`
	Mode  string   `json:"mode,omitempty"`
	Names []string `json:"names,omitempty"`
	Parts []struct {
		Name string `json:"name"`
	} `json:"parts,omitempty"`
}

func define(run func(args) (Result, error)) Tool {
	return Definition[args]{
		Name: "thing", Description: " does it \n", Enums: map[string][]string{"mode": {"fast", "slow"}},
		Plan: func(context.Context, Call, args) (Plan, error) { return Plan{Summary: "doing"}, nil },
		Run:  func(_ context.Context, _ Call, a args, _ Sink) (Result, error) { return run(a) },
	}.Build()
}

func TestDefinition(t *testing.T) {
	var got args
	tool := define(func(a args) (Result, error) { got = a; return Text("ok"), nil })
	spec := tool.Spec()
	var schema struct {
		Type       string
		Required   []string
		Properties map[string]struct {
			Type        any
			Description string
			Enum        []string
		}
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || strings.Join(schema.Required, " ") != "path" || schema.Properties["path"].Description != "where" || len(schema.Properties["mode"].Enum) != 2 || schema.Properties["limit"].Type != "integer" || schema.Properties["names"].Type != "array" {
		t.Errorf("schema %s", spec.Schema)
	}
	if spec.FullName() != "eca__thing" || spec.Description != "does it" {
		t.Errorf("spec %+v", spec)
	}
	for in, want := range map[string]string{
		`{"path":"x","limit":3,"mode":"fast"}`:                            "",
		`{"path":"x","limit":null,"mode":"","summary":"hi"}`:              "", // absent, and a key of the model's own
		`{"path":"x","names":null,"parts":[{"name":"y","of":"its own"}]}`: "",
		`{"path":""}`:              "",
		`{}`:                       "needs path",
		`{"path":null}`:            "needs path",
		`{"path":7}`:               "INVALID_ARGS",
		`{"path":"x","limit":"3"}`: "INVALID_ARGS",
		`{"path":"x","mode":"no"}`: "INVALID_ARGS",
		`[]`:                       "not a JSON object",
		`{"path":`:                 "not a JSON object",
	} {
		call := Call{Arguments: json.RawMessage(in)}
		_, planErr := tool.Plan(context.Background(), call)
		_, runErr := tool.Run(context.Background(), call, nil)
		for _, err := range []error{planErr, runErr} {
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", in, err, want)
			}
		}
	}
	_, _ = tool.Run(context.Background(), Call{Arguments: json.RawMessage(`{"path":"p","names":["a"]}`)}, nil)
	if got.Path != "p" || len(got.Names) != 1 {
		t.Errorf("arguments %+v", got)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tool.Run(ctx, Call{Arguments: json.RawMessage(`{"path":"p"}`)}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call ran: %v", err)
	}
}

func TestRegistry(t *testing.T) {
	a := define(func(args) (Result, error) { return Text("a"), nil })
	r := NewRegistry(a)
	for _, name := range []string{"eca__thing", "thing"} {
		if _, ok := r.Lookup(name); !ok {
			t.Errorf("no %s", name)
		}
	}
	if _, ok := r.Lookup("other__thing"); ok {
		t.Error("another server's tool was found")
	}
}

// An output that was cut is valid text and says how to get the rest. The file that it names has the
// whole output.
func TestLimit(t *testing.T) {
	for name, text := range map[string]string{
		"lines": strings.Repeat("line\n", 50), "bytes": strings.Repeat("é", 300), "both": strings.Repeat(strings.Repeat("é", 100)+"\n", 50),
	} {
		dir := t.TempDir()
		tool := Limit(define(func(args) (Result, error) { return Result{Outputs: []string{"short", text}}, nil }), Limits{Lines: 10, Bytes: 101, Whole: NewOutputs(dir, time.Now)})
		res, err := tool.Run(context.Background(), Call{ID: "../../evil id", Arguments: json.RawMessage(`{"path":"p"}`)}, nil)
		if err != nil || res.Outputs[0] != "short" {
			t.Fatal(err, res)
		}
		short, notice, _ := strings.Cut(res.Outputs[1], "\n\n[cut:")
		if len(short) > 101 || strings.Count(short, "\n") >= 10 || strings.ToValidUTF8(short, "?") != short || !strings.HasPrefix(text, short) {
			t.Errorf("%s: cut to %q", name, short)
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if len(files) != 1 || !strings.Contains(notice, filepath.ToSlash(files[0])) {
			t.Fatalf("%s: %v, %q", name, files, notice)
		}
		if whole, _ := os.ReadFile(files[0]); string(whole) != text {
			t.Errorf("%s: the file has %d bytes", name, len(whole))
		}
	}
	end := Limit(define(func(args) (Result, error) { return Text(BeginningLost + "\n" + strings.Repeat("line\n", 50)), nil }), Limits{Lines: 10, Bytes: 101, Whole: NewOutputs(t.TempDir(), time.Now)})
	if res, _ := end.Run(t.Context(), Call{ID: "c", Arguments: json.RawMessage(`{"path":"p"}`)}, nil); strings.Contains(res.Outputs[0], "whole output") || !strings.Contains(res.Outputs[0], " of the last ") {
		t.Errorf("without its beginning: %q", res.Outputs[0])
	}
	exact := Limit(define(func(args) (Result, error) { return Text(strings.Repeat("line\n", 10)), nil }), Limits{Lines: 10, Bytes: 1000})
	if res, _ := exact.Run(context.Background(), Call{Arguments: json.RawMessage(`{"path":"p"}`)}, nil); strings.Contains(res.Outputs[0], "[cut") {
		t.Errorf("an output that fits was cut: %q", res.Outputs[0])
	}
}

// The limits apply to all outputs of a result together. Outputs that fit are not changed.
func TestLimitOfMany(t *testing.T) {
	dir := t.TempDir()
	for n, want := range map[int]int{4: 4, 20: 20, 1000: 4} {
		tool := Limit(define(func(args) (Result, error) {
			return Result{Outputs: slices.Repeat([]string{"0123456789"}, n)}, nil
		}), Limits{Lines: 100, Bytes: 300, Whole: NewOutputs(dir, time.Now)})
		res, err := tool.Run(t.Context(), Call{ID: "c", Arguments: json.RawMessage(`{"path":"p"}`)}, nil)
		if err != nil || len(res.Outputs) != want {
			t.Errorf("%d outputs became %d, %v", n, len(res.Outputs), err)
		}
		if last := res.Outputs[len(res.Outputs)-1]; strings.Contains(last, "[cut:") != (n == 1000) || len(last) > 1000 {
			t.Errorf("of %d outputs the last is %q", n, last)
		}
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(files) != 1 {
		t.Errorf("files: %v", files)
	}
}

// Limit leaves out images that no provider takes, and says which and why. Cutting the text does not
// remove images.
func TestLimitImages(t *testing.T) {
	gif := []byte("GIF89a picture")
	all := []event.Image{{MediaType: "image/png", Data: gif}, {MediaType: "image/svg+xml", Data: []byte("<svg/>")}, {MediaType: "image/gif", Data: append(gif, make([]byte, workspace.MaxImage)...)}}
	for range 60 {
		all = append(all, event.Image{MediaType: "image/gif", Data: gif})
	}
	tool := Limit(define(func(args) (Result, error) {
		return Result{Outputs: []string{strings.Repeat("x\n", 9)}, Images: all}, nil
	}), Limits{Lines: 1, Whole: NewOutputs(t.TempDir(), time.Now)})
	res, err := tool.Run(t.Context(), Call{ID: "c", Arguments: json.RawMessage(`{"path":"p"}`)}, nil)
	if err != nil || len(res.Images) != 20 || res.Images[0].MediaType != "image/gif" {
		t.Fatalf("%d images, %v", len(res.Images), err)
	}
	got := strings.Join(res.Outputs, "\n")
	for _, want := range []string{"[cut:", "(image/svg+xml) is left out: it is not a PNG", "(image/gif) is left out: it has 3750014 bytes, and the limit is 3750000.", "the limit is 20 images for one result", "[23 more images are left out.]"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

// The stricter of two verdicts has the stricter decision, and always asks if one of them does. The
// order of the two does not matter.
func TestStricter(t *testing.T) {
	rank := map[Decision]int{Allow: 1, Ask: 2, Deny: 3}
	for a := range rank {
		for b := range rank {
			for _, insist := range []bool{false, true} {
				got := Verdict{Decision: a, Rule: "a", AlwaysAsk: insist}.Stricter(Verdict{Decision: b, Rule: "b"})
				back := Verdict{Decision: b, Rule: "b"}.Stricter(Verdict{Decision: a, Rule: "a", AlwaysAsk: insist})
				if rank[got.Decision] != max(rank[a], rank[b]) || got.Decision != back.Decision || got.AlwaysAsk != insist || back.AlwaysAsk != insist {
					t.Errorf("%s and %s: %+v, %+v", a, b, got, back)
				}
				if a != b && got.Rule != back.Rule {
					t.Errorf("%s and %s: the rule is %s or %s", a, b, got.Rule, back.Rule)
				}
			}
		}
	}
}

// FullName replaces names that no provider takes, and gives different tools different names.
func TestFullName(t *testing.T) {
	long := strings.Repeat("x", 100)
	seen := map[string]bool{}
	for _, c := range [][2]string{{"eca", "read_file"}, {"My.Server", "a"}, {"My_Server", "a"}, {"sé", "ver y/odd"}, {"s", long}, {"s", long + "y"}} {
		spec := Spec{Server: c[0], Name: c[1]}
		full := spec.FullName()
		if len(full) > 64 || seen[full] || strings.Trim(full, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			t.Errorf("%v: %q", c, full)
		}
		seen[full] = true
		if spec.Written() != c[0]+"__"+c[1] {
			t.Errorf("%v is written %q", c, spec.Written())
		}
	}
	if !seen["eca__read_file"] || !seen["My_Server__a"] {
		t.Errorf("names that are fine changed: %v", seen)
	}
}
