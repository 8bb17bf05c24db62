package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-dec29ce4/eca/ecp"
)

// hostile is a text with special characters of every format.
const hostile = "</script><script>alert(1)</script> ]]> \x00\x1b[31m\u2028 :: %0A::error::x | * _ ` \xff {{.}} é😀 \u202eback\u202c"

func fullReport() *Report {
	text := hostile
	cost := 0.5
	r := &Report{
		Manifest: "/m.yaml", Name: hostile, Target: hostile, RunID: "r", StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), SchemaVersion: SchemaVersion,
		Scenarios: []Scenario{{
			Name: hostile, ID: "0", Status: Failed, Line: 3, Errors: []Problem{{Kind: "exit", Message: hostile, Stderr: hostile}}, Agent: &Agent{Name: hostile, Capabilities: ecp.Capabilities{hostile: json.RawMessage(`{"</script>":1}`)}},
			Notes: []string{hostile}, Variant: map[string]string{"model": hostile}, Record: map[string]string{hostile: hostile},
			Steps: []Step{{
				Input: hostile, Output: &text, EvaluationContext: &text, Logs: &text, Status: "done", Verdict: Failed, StopReason: hostile, Model: hostile, CostUSD: &cost, Usage: ecp.NewUsage(map[string]int64{ecp.TokensInput: 3}),
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

// An agent's output is only text, in every format.
func TestHostile(t *testing.T) {
	r := fullReport()
	var html, junit, markdown, annotations, text bytes.Buffer
	if err := r.HTML(&html); err != nil {
		t.Fatal(err)
	}
	page := html.String()
	if n := strings.Count(page, "<script>"); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if strings.Contains(page, "%!") || !strings.Contains(page, "<b>$0.5000</b>cost") {
		t.Error("a value is printed as something else")
	}
	for _, foreign := range []string{"\x1b", "\u202e", "http://", "https://", "src=", "url(", "@import", "<link", "<img", "alert(1)</script>"} {
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

// Tool calls are readable: letters are not escaped, results are text, and unexpected values are
// shown.
func TestTrace(t *testing.T) {
	call := func(text string) (c ecp.ToolCall) {
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct {
		call ecp.ToolCall
		want trace
	}{
		"full": {
			call(`{"name":"grep","arguments":{"text":"\u00e9<b>"},"result":"a\nb","is_error":true,"duration_ms":1234.5,"id":"1","refused":true}`),
			trace{Name: "grep", Brief: `{ "text": "é<b>" }`, Arguments: "{\n  \"text\": \"é<b>\"\n}", Result: "a\nb", Failed: true, Refused: true, Duration: "1.23 s", More: "{\n  \"id\": \"1\"\n}"},
		},
		"bare":  {call(`{"name":"x"}`), trace{Name: "x"}},
		"empty": {call(`{"name":"x","arguments":{}}`), trace{Name: "x"}},
		"odd": {
			call(`{"name":"x","result":{"big":12345678901234567890},"is_error":"yes","duration_ms":null}`),
			trace{Name: "x", More: "{\n  \"is_error\": \"yes\",\n  \"result\": {\n    \"big\": 12345678901234567890\n  }\n}"},
		},
	} {
		if diff := cmp.Diff(c.want, traceOf(c.call)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Each variant of a matrix has its own sums.
func TestVariants(t *testing.T) {
	cost := 0.5
	step := func(passed bool) []Step {
		return []Step{{Usage: ecp.NewUsage(map[string]int64{ecp.TokensInput: 2, ecp.TokensOutput: 1}), CostUSD: &cost, Checks: []Check{{Passed: passed}}}}
	}
	r := &Report{Scenarios: []Scenario{
		{Name: "s", Status: Passed, Variant: map[string]string{"model": "a|b", "seed": "1"}, DurationMS: 5, Steps: step(true)},
		{Name: "s", Status: Failed, Variant: map[string]string{"model": "c", "seed": "1"}, DurationMS: 7, Steps: step(false)},
		{Name: "t", Status: Error, Variant: map[string]string{"model": "a|b", "seed": "1"}, DurationMS: 1},
	}}
	r.Sum()
	one := 0.5
	want := []Variant{
		{Labels: r.Scenarios[0].Variant, Counts: Counts{Passed: 1, Error: 1}, Passed: 1, Total: 1, Tokens: 3, CostUSD: &one, DurationMS: 6},
		{Labels: r.Scenarios[1].Variant, Counts: Counts{Failed: 1}, Total: 1, Tokens: 3, CostUSD: &one, DurationMS: 7},
	}
	sum := r.Variants[0].Summary
	if sum.Cases != 2 || sum.Passed != 1 || sum.Errors != 1 || sum.PassRate != 0.5 || sum.GradedRate != 1 || sum.CI95 != nil || sum.Note == "" || sum.P50MS != 1 || sum.P95MS != 5 {
		t.Errorf("%+v", sum)
	}
	if diff := cmp.Diff(want, r.Variants, cmpopts.IgnoreFields(Variant{}, "Summary")); diff != "" {
		t.Error(diff)
	}
	var page, text, lines bytes.Buffer
	if err := errors.Join(r.HTML(&page), r.Markdown(&text), r.WriteVariants(&lines, strings.ToUpper)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(page.String(), `<th scope="row">model=a|b seed=1</th>`) || !strings.Contains(text.String(), `| model=a\|b seed=1 | 1 | 0 | 1 | 1 of 1 | 3 | $0.5000 | 0.0 s |`) {
		t.Errorf("%s", text.String())
	}
	if want := "MODEL=A|B SEED=1  1 of 2 scenarios passed, 1 of 1 checks, 0.0 s, $0.5000\nMODEL=C SEED=1    0 of 1"; !strings.HasPrefix(lines.String(), want) {
		t.Errorf("%s", lines.String())
	}
}

// A new scenario that does not pass is a new failure; a new one that passes is not.
func TestCompareAdded(t *testing.T) {
	old := &Report{Scenarios: []Scenario{{Name: "a", ID: "0", Status: Passed}, {Name: "gone", ID: "1", Status: Passed}}}
	now := &Report{Scenarios: []Scenario{
		{Name: "a", ID: "0", Status: Passed},
		{Name: "b", ID: "1", Status: Passed},
		{Name: "c", ID: "2", Status: Failed, Variant: map[string]string{"model": "m"}},
	}}
	c := Compare(old, now, "p")
	if diff := cmp.Diff([]any{[]string{"c [model=m]: failed, is new"}, []string{"b", "c [model=m]"}, []string{"gone"}}, []any{c.NewFail, c.Added, c.Missing}); diff != "" {
		t.Error(diff)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -100: "-100", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for ms, want := range map[float64]string{0: "0.0 ms", 9.94: "9.9 ms", 12.3: "12 ms", 1500: "1.50 s", 125000: "2 min 05 s"} {
		if got := duration(ms); got != want {
			t.Errorf("%v: %s", ms, got)
		}
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

func TestCompareNatural(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"run-8", "run-10", -1}, {"run-10", "run-9", 1}, {"a", "b", -1}, {"a1b2", "a1b10", -1}, {"x", "x", 0}, {"01", "1", 0}, {"", "a", -1}} {
		if got := compareNatural(c.a, c.b); got != c.want {
			t.Errorf("%s, %s: %d", c.a, c.b, got)
		}
	}
}

// Noise is not a trend.
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

// A change counts if it is too large for chance, given the number of checks, and larger than the
// usual variation of the runs.
func TestTrendCountsChecks(t *testing.T) {
	for _, c := range []struct {
		total  int
		passed []int
		want   string
	}{
		{10, []int{10, 10, 10, 0}, Degrading},
		{10, []int{10, 10, 0}, Degrading},
		{10, []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 0}, Degrading},
		{10, []int{10, 10, 10, 10, 0, 0}, Degrading},
		{10, []int{10, 9, 8, 7, 6, 5}, Degrading},
		{10, []int{10, 6}, Degrading},
		{10, []int{10, 7}, Stable}, // by chance, 1 time in 10
		{1000, []int{1000, 1000, 1000, 990}, Degrading},
		{1, []int{1, 1, 1, 0}, Stable},
		{1, []int{1, 0}, Stable},
		{2, []int{2, 2, 2, 1}, Stable},
		{10, []int{10, 10, 0, 10, 10}, Stable}, // it has recovered
		{10, []int{9, 10, 8, 10, 9, 8}, Stable},
		{100, []int{95, 85, 92, 81}, Stable}, // the runs vary that much
		{10, []int{0, 10, 10, 10}, Improving},
		{10, []int{0, 0, 0, 10}, Improving},
		{10, []int{10, 10, 10, 10}, Stable},
		{10, []int{0, 0, 0}, Stable},
		{10, []int{7}, Stable},
	} {
		var in []Input
		for i, n := range c.passed {
			in = append(in, Input{Path: fmt.Sprintf("run-%d", i), Data: fmt.Appendf(nil, `{"manifest":"m","passed":%d,"total":%d,"failed":0,"scenarios":[]}`, n, c.total)})
		}
		if tr, _ := Trends(in, TrendOptions{Window: 20}); tr[0].Direction != c.want || (tr[0].Reason == "") != (c.want == Stable) {
			t.Errorf("%v of %d: %s (%s)", c.passed, c.total, tr[0].Direction, tr[0].Reason)
		}
	}
}

// Any data that is accepted as a report can be written.
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
