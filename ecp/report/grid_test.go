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

// Cells show what there is to show, and all text is escaped.
func TestCellsHTML(t *testing.T) {
	for _, c := range []struct {
		cell Cell
		want string
	}{
		{Cell{}, `<td><span class="dim">not run</span></td>`},
		{
			Cell{Ran: true, Href: "#s-1-v", Status: Passed, N: 1, Passed: 1, MS: 12},
			`<td data-status="passed" data-kind=""><a class="passed" href="#s-1-v">✓ passed</a> <span class="dim small">12 ms</span></td>`,
		},
		{
			Cell{Ran: true, Href: `#"<`, Status: Failed, N: 4, Passed: 1, MS: 1500, Cost: 0.25, CI95: &[2]float64{0.1, 0.5}, Kind: `a"b`, Why: `a"b: <b>'no' & more`},
			`<td data-status="failed" data-kind="a&#34;b" data-flaky><a class="failed" href="#&#34;&lt;">✗ failed 1/4 flaky</a> <span class="dim small">1.50 s · $0.2500</span><span class="rate" aria-hidden="true"><i style="width:25.0%"></i></span><span class="dim small">10.0% to 50.0%</span> <span class="reason" title="a&#34;b: &lt;b&gt;&#39;no&#39; &amp; more">a&#34;b: &lt;b&gt;&#39;no&#39; &amp; more</span></td>`,
		},
		{
			Cell{Ran: true, Href: "#s", Status: Error, Kind: "timeout", Why: "timeout: late"},
			`<td data-status="error" data-kind="timeout"><a class="error" href="#s">! error</a> <span class="dim small">0.0 ms</span> <span class="reason" title="timeout: late">timeout: late</span></td>`,
		},
	} {
		if diff := cmp.Diff(c.want, string(GridRow{Cells: []Cell{c.cell}}.CellsHTML())); diff != "" {
			t.Error(diff)
		}
	}
}
