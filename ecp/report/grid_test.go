package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The grid has a row for each scenario and a column for each variant, and gives the reason of a
// failure in one line.
func TestGrid(t *testing.T) {
	failed := []Step{{Checks: []Check{{Type: "file", Passed: true}, {Type: "command", Reasoning: "exit 1:\n  boom " + strings.Repeat("x", 300)}}}}
	r := &Report{Name: "n", Scenarios: []Scenario{
		{ID: "a", Name: "A", Status: Passed, Variant: map[string]string{"model": "one"}},
		{ID: "b", Name: "B", Status: Failed, Steps: failed, Variant: map[string]string{"model": "one"}, Repeat: &Repeat{N: 3, Passed: 2}},
		{ID: "b", Name: "B", Status: Error, Errors: []Problem{{Kind: "timeout", Message: "no <b>answer</b>"}}, Variant: map[string]string{"model": "two"}},
	}}
	why := "command: exit 1: boom " + strings.Repeat("x", 300)
	want := &Grid{Total: 2, Columns: []string{"model=one", "model=two"}, Rows: []GridRow{
		{Name: "A", Rate: 1, Cells: []Cell{{Ran: true, Href: "#s0", Status: Passed, N: 1, Passed: 1}, {}}},
		{Name: "B", Rate: 0.5, Cells: []Cell{
			{Ran: true, Href: "#s1", Status: Failed, N: 3, Passed: 2, CI95: &[2]float64{}, Kind: "command", Why: why[:maxWhy] + "…"},
			{Ran: true, Href: "#s2", Status: Error, N: 1, Kind: "timeout", Why: "timeout: no <b>answer</b>"},
		}},
	}}
	if diff := cmp.Diff(want, r.grid()); diff != "" {
		t.Error(diff)
	}
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`<th scope="col">model=two</th>`, `<a class="failed" href="#s1">✗ failed 2/3 flaky</a>`, `<option value="command">command (1)</option>`, "timeout: no &lt;b&gt;answer&lt;/b&gt;", "not run", `id="s2"`} {
		if !strings.Contains(page.String(), text) {
			t.Errorf("the page has no %s", text)
		}
	}
	if strings.Index(page.String(), `<table class="grid"`) > strings.Index(page.String(), `<details class="scenario"`) {
		t.Error("the grid is not first")
	}
}
