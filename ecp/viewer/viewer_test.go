package viewer_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/ecp/viewer"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const token = "secret"

// newReport is a report of n tasks and two models; its results have all optional parts.
func newReport(n int) *report.Report {
	r := &report.Report{Name: "Made <b>", RunID: "r", SchemaVersion: report.SchemaVersion, Manifest: "manifest.yaml", Target: "agent", Agent: &report.Agent{Name: "a", Version: "1"}}
	for _, v := range []string{"small", "large"} {
		for i := range n {
			r.Scenarios = append(r.Scenarios, result(i, v))
		}
	}
	r.Sum()
	return r
}

func result(i int, v string) report.Scenario {
	answer, cost := "<script>alert(1)</script> done", 0.25
	s := report.Scenario{Name: fmt.Sprint("task ", i), ID: fmt.Sprint("id", i), VariantKey: "key" + v, Variant: map[string]string{"model": v}, Status: report.Passed, DurationMS: int64(i), Record: map[string]string{"q": "x"}}
	steps := []report.Step{{
		Input: "do it", Output: &answer, Status: "done", Verdict: report.Passed, Outcome: report.StatusOK, DurationMS: 50, Model: v, CostUSD: &cost, Timing: &ecp.Timing{TotalMS: 50, ModelMS: 30, ToolMS: 10},
		Usage:     ecp.NewUsage(map[string]int64{ecp.TokensInput: 3, ecp.TokensOutput: 4}),
		ToolCalls: []ecp.ToolCall{{Name: "read", Arguments: json.RawMessage(`{"path":"a"}`), Extra: map[string]json.RawMessage{ecp.CallResult: json.RawMessage(`"text"`), ecp.CallIsError: json.RawMessage("true")}}},
		Checks:    []report.Check{{Type: "file", Field: "a", Passed: true, Score: 1, Reasoning: "it is there"}},
	}}
	if bad := i%4 == 2 || v == "small" && i%4 == 3; bad {
		s.Status, steps[0].Verdict = report.Failed, report.Failed
		steps[0].Checks = append(steps[0].Checks, report.Check{Type: "llm_judge", Reasoning: "it is rude", Votes: []report.Vote{{Reasoning: "rude"}}})
	}
	if i == 5 {
		s.Status, s.Errors = report.Error, []report.Problem{{Kind: "timeout", Message: "no answer", Stderr: "late"}}
	}
	s.Steps, s.Diff = steps, "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
	if i == 6 {
		for n := range 45 {
			status := []string{report.Passed, report.Failed}[n%2]
			s.Attempts = append(s.Attempts, report.Attempt{Status: status, Steps: steps, Errors: []report.Problem{}})
		}
		s.Repeat, s.PassAtK = report.Statistics(s.Attempts)
	}
	return s
}

func startViewer(t *testing.T, reports ...*report.Report) *httptest.Server {
	t.Helper()
	var runs []*runfile.File
	for _, r := range reports {
		path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
		if err := runfile.Write(path, r); err != nil {
			t.Fatal(err)
		}
		f, err := runfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		runs = append(runs, f)
	}
	s := httptest.NewUnstartedServer(nil)
	h, err := viewer.New(runs, httpguard.Options{Address: s.Listener.Addr().String(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	s.Config.Handler = h
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, address string, change func(*http.Request)) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// Requests without the token, and requests of other origins' pages, get nothing.
func TestRefused(t *testing.T) {
	s := startViewer(t, newReport(3))
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"with the token": {"/secret/", nil, 200},
		"without":        {"/", nil, 401},
		"another":        {"/Secret/", nil, 401},
		"part of it":     {"/secre/", nil, 401},
		"in the query":   {"/?token=secret", nil, 401},
		"foreign host":   {"/secret/", func(r *http.Request) { r.Host = "evil.example" }, 403},
		"foreign page":   {"/secret/", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, 403},
		"no run":         {"/secret/run/1/", nil, 404},
		"no result":      {"/secret/run/0/result/99", nil, 404},
		"no number":      {"/secret/run/0/result/x", nil, 404},
		"a file":         {"/secret/../../etc/passwd", nil, 401},
		"writing":        {"/secret/", func(r *http.Request) { r.Method = http.MethodPost }, 405},
	} {
		if got, body := get(t, s.URL+c.path, c.change); got != c.want {
			t.Errorf("%s: %d, want %d: %.200s", name, got, c.want, body)
		} else if got != 200 && strings.Contains(body, "Made") {
			t.Errorf("%s: it says something of the run", name)
		}
	}
}

// A run is shown page by page; cells lead to results, results to their neighbours.
func TestPages(t *testing.T) {
	s := startViewer(t, newReport(230))
	page := func(path string, want ...string) string {
		t.Helper()
		status, body := get(t, s.URL+"/secret/"+path, nil)
		if status != 200 {
			t.Fatalf("%s: %d %s", path, status, body)
		}
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s has no %s", path, text)
			}
		}
		if strings.Contains(body, "<script>alert") {
			t.Errorf("%s runs what an agent said", path)
		}
		return body
	}
	body := page("", "Made &lt;b&gt;", "100 of 230 scenarios", "model=large solves", "llm_judge: it is rude", "timeout (2)", `href="/secret/run/0/result/1"`)
	for n := 2; n < 4; n++ {
		_, next, ok := strings.Cut(body, `<a rel="next" href="/secret/`)
		if !ok {
			t.Fatalf("there is no page %d", n)
		}
		next, _, _ = strings.Cut(next, `"`)
		body = page(strings.ReplaceAll(next, "&amp;", "&"))
	}
	if !strings.Contains(body, "30 of 230 scenarios") || strings.Contains(body, `rel="next"`) {
		t.Error("the last page is not the last one")
	}
	page("?"+url.Values{"status": {"error"}}.Encode(), "1 of 1 scenarios", "task 5")
	page("run/0/result/3", "llm_judge: it is rude", "do it", "read", "vote: fail, 0.00: rude", "&#43;b", `rel="next" href="/secret/run/0/result/4"`, "&lt;script&gt;alert")
	page("run/0/result/7", "Attempt 1:", "Attempt 20:", `result/7?from=21`)
	if body := page("run/0/result/7?from=41", "Attempt 41:", "Attempt 45:"); strings.Contains(body, "Attempt 20:") || strings.Contains(body, "from=61") {
		t.Error("a page has attempts of another")
	}
	page("compare", "model=large solves", "solved only by model=large", `href="/secret/run/0/result/4"`)
}

// Several runs are listed, and can be compared.
func TestRuns(t *testing.T) {
	s := startViewer(t, newReport(8), newReport(12))
	if _, body := get(t, s.URL+"/secret/", nil); strings.Count(body, `href="/secret/run/`) != 2 {
		t.Error(body)
	}
	if _, body := get(t, s.URL+"/secret/compare?a=0.0&b=1.0", nil); !strings.Contains(body, "Made &lt;b&gt; (2) model=small solves as many of 8 tasks as Made &lt;b&gt; (1) model=small") {
		t.Error(body)
	}
}

// In Chromium, axe reports no problems, and keys, filters and links work: in a report file, and in
// the served pages.
func TestBrowser(t *testing.T) {
	chromium := needs.Program(t, "chromium", "chromium")
	node, modules := testkit.NodeTools(t, os.Getenv, "playwright-core", "axe-core")
	r := newReport(8)
	file := filepath.Join(t.TempDir(), "report.html")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.HTML(out); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	order, err := json.Marshal(map[string]string{"modules": modules, "chromium": chromium, "file": "file://" + filepath.ToSlash(file), "live": startViewer(t, r).URL + "/secret/"})
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "browse.cjs"), string(order)).CombinedOutput()
	if err != nil || string(said) != "looked\n" {
		t.Errorf("%v\n%s", err, said)
	}
}
