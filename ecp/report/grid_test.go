package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The grid has a row for each scenario and a column for each variant, and says in one line why
// something did not pass.
func TestGrid(t *testing.T) {
	failed := []Step{{Checks: []Check{{Type: "file", Passed: true}, {Type: "command", Reasoning: "exit 1:\n  boom " + strings.Repeat("x", 300)}}}}
	r := &Report{Name: "n", Scenarios: []Scenario{
		{ID: "a", Name: "A", Status: Passed, Variant: map[string]string{"model": "one"}},
		{ID: "b", Name: "B", Status: Failed, Steps: failed, Variant: map[string]string{"model": "one"}, Repeat: &Repeat{N: 3, Passed: 2}},
		{ID: "b", Name: "B", Status: Error, Errors: []Problem{{Kind: "timeout", Message: "no <b>answer</b>"}}, Variant: map[string]string{"model": "two"}},
	}}
	why := "command: exit 1: boom " + strings.Repeat("x", 300)
	want := grid{Columns: []string{"model=one", "model=two"}, Rows: []gridRow{
		{Name: "A", Cells: []gridCell{{Ran: true, Status: Passed}, {}}},
		{Name: "B", Cells: []gridCell{
			{Ran: true, Place: 1, Status: Failed, Rate: "2/3", Flaky: true, Why: why[:maxWhy] + "…"},
			{Ran: true, Place: 2, Status: Error, Why: "timeout: no <b>answer</b>"},
		}},
	}}
	if diff := cmp.Diff(want, r.grid()); diff != "" {
		t.Error(diff)
	}
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`<th scope="col">model=two</th>`, `<a class="failed" href="#s1">✗ failed 2/3 flaky</a>`, "timeout: no &lt;b&gt;answer&lt;/b&gt;", "not run", `id="s2"`} {
		if !strings.Contains(page.String(), text) {
			t.Errorf("the page has no %s", text)
		}
	}
	if strings.Index(page.String(), `class="grid"`) > strings.Index(page.String(), "<details") {
		t.Error("the grid is not first")
	}
}
