package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp"
)

// hostile is a text that means something in every format.
const hostile = "</script><script>alert(1)</script> ]]> \x00\x1b[31m\u2028 :: %0A::error::x | * _ ` \xff {{.}} é😀"

func full() *Report {
	text := hostile
	cost := 0.5
	r := &Report{
		Manifest: "/m.yaml", Name: hostile, Target: hostile, RunID: "r", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), SchemaVersion: SchemaVersion,
		Scenarios: []Scenario{{
			Name: hostile, ID: "0", Status: Failed, Line: 3, Errors: []Problem{{Kind: "exit", Message: hostile, Stderr: hostile}}, Agent: &Agent{Name: hostile, Capabilities: map[string]any{hostile: hostile}},
			Notes: []string{hostile}, Variant: map[string]string{"model": hostile}, Record: map[string]string{hostile: hostile},
			Steps: []Step{{
				Input: hostile, Output: &text, EvaluationContext: &text, Logs: &text, Status: "done", Verdict: Failed, StopReason: hostile, Model: hostile, CostUSD: &cost, Usage: &ecp.Usage{InputTokens: 3},
				ToolCalls: []ecp.ToolCall{{Name: hostile, Arguments: json.RawMessage(`{"a":"</script>"}`)}},
				Checks:    []Check{{Type: "text_match", Field: "public_output", Reasoning: hostile}, {Type: "text_match", Field: "public_output", Passed: true, Score: 1, Reasoning: hostile}},
				Extra:     map[string]json.RawMessage{"x": json.RawMessage(`"</script>"`)},
			}},
		}},
		Baseline: &Comparison{NewFail: []string{hostile}, NewPass: []string{hostile}},
	}
	r.Sum()
	return r
}

// Nothing that an agent says is more than text, in any format.
func TestHostile(t *testing.T) {
	r := full()
	var html, junit, markdown, annotations, text bytes.Buffer
	if err := r.HTML(&html); err != nil {
		t.Fatal(err)
	}
	page := html.String()
	if n := strings.Count(page, "<script>"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	for _, foreign := range []string{"http://", "https://", "src=", "url(", "@import", "<link", "<img", "alert(1)</script>"} {
		if strings.Contains(page, foreign) {
			t.Errorf("the page has %s", foreign)
		}
	}
	if err := r.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(junit.Bytes(), &suites); err != nil || len(suites.Suite.Cases) != 1 || suites.Suite.Cases[0].Failure == nil {
		t.Errorf("%v: %s", err, junit.String())
	}
	if err := r.Markdown(&markdown); err != nil || strings.Contains(markdown.String(), "<script") || strings.Contains(markdown.String(), "\n::error") {
		t.Errorf("%v: %s", err, markdown.String())
	}
	if err := r.Annotations(&annotations, "a:b,c.yaml"); err != nil || strings.Count(annotations.String(), "\n") != 1 || !strings.HasPrefix(annotations.String(), "::error file=a%3Ab%2Cc.yaml,line=3,") {
		t.Errorf("%v: %q", err, annotations.String())
	}
	if err := r.JSON(&text); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(text.String(), func(r rune) bool { return r > 0x7e || r < ' ' && r != '\n' }) {
		t.Errorf("no ASCII: %s", text.String())
	}
	back, err := Parse(text.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	if err := back.JSON(&again); err != nil || again.String() != text.String() {
		t.Errorf("%v: %s", err, cmp.Diff(text.String(), again.String()))
	}
}

func TestStatistics(t *testing.T) {
	attempts := make([]Attempt, 10)
	for i := range attempts {
		attempts[i].Status = Failed
		if i < 3 {
			attempts[i].Status = Passed
		}
	}
	attempts[9].Status = Error
	r, pass := Statistics(attempts)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-4 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("pass@1", pass["1"], 0.3)
	near("pass@2", pass["2"], 1-7.0/10*6/9)
	near("pass@10", pass["10"], 1)
	near("pass^2", r.PassAllK["2"], 3.0/10*2/9)
	near("pass^4", r.PassAllK["4"], 0)
	near("low", r.CI95[0], 0.10779)
	near("high", r.CI95[1], 0.60322)
}

func TestNatural(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"run-8", "run-10", -1}, {"run-10", "run-9", 1}, {"a", "b", -1}, {"a1b2", "a1b10", -1}, {"x", "x", 0}, {"01", "1", 0}, {"", "a", -1}} {
		if got := natural(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d", c.a, c.b, got)
		}
	}
}

// Noise is no trend.
func TestTrendNoise(t *testing.T) {
	rates := []int{90, 80, 95, 85, 92, 81, 93, 84}
	var in []Input
	for i, n := range rates {
		in = append(in, Input{Path: string(rune('a' + i)), Data: []byte(strings.ReplaceAll(`{"manifest":"m","passed":N,"total":100,"failed":0,"scenarios":[]}`, "N", string(rune('0'+n/10))+string(rune('0'+n%10))))})
	}
	if tr, _ := Trends(in, TrendOptions{Window: 20}); tr[0].Direction != Stable {
		t.Errorf("%+v", tr)
	}
	if tr, _ := Trends(in, TrendOptions{Window: 2}); len(tr[0].Runs) != 2 || tr[0].Direction != Degrading {
		t.Errorf("%+v", tr)
	}
}

// Whatever is read as a report can be written.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"manifest":"m","passed":1,"total":2,"failed":1,"scenarios":[{"name":"s","steps":[{"input":"x","output":null,"tool_calls":[{"name":"a"}],"checks":[{"type":"t","field":"f","passed":true,"score":1.0,"reasoning":"r"}]}]}]}`))
	f.Add([]byte(`{"scenarios":null,"total":-1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse(data)
		if err != nil {
			return
		}
		r.Sum()
		Compare(r, r, "x")
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return r.JUnit(b) }, func(b *bytes.Buffer) error { return r.Markdown(b) }, func(b *bytes.Buffer) error { return r.HTML(b) },
		} {
			if err := write(&bytes.Buffer{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}
