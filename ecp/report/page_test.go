package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reportOf returns a report with one attempt for each of n scenarios, every tenth of which failed.
func reportOf(n int) *Report {
	r := &Report{Name: "many", SchemaVersion: SchemaVersion}
	for i := range n {
		s := Scenario{Name: fmt.Sprint("task ", i), ID: fmt.Sprint("id", i), VariantKey: "v", Status: Passed}
		if i%10 == 3 {
			s.Status = Failed
			s.Steps = []Step{{Checks: []Check{{Type: "file", Reasoning: "gone"}}}}
		}
		r.Scenarios = append(r.Scenarios, s)
	}
	r.Sum()
	return r
}

// A page shows up to 2,000 attempts. With more, it shows the failures, and says where the rest is.
func TestPageLimits(t *testing.T) {
	for n, want := range map[int]int{2000: 2000, 2001: 200, 10_000: 500} {
		var page bytes.Buffer
		if err := reportOf(n).HTML(&page); err != nil {
			t.Fatal(err)
		}
		text := page.String()
		if got := strings.Count(text, `<details class="scenario"`); got != want {
			t.Errorf("%d attempts: %d results, want %d", n, got, want)
		}
		if got := strings.Contains(text, "ecp view FILE"); got != (n > 2000) {
			t.Errorf("%d attempts: the page names the command: %t", n, got)
		}
		if got := strings.Count(text, "<tr data-rate="); got != min(n, 2000) {
			t.Errorf("%d attempts: the grid has %d rows", n, got)
		}
	}
}

// Long attempts displace others, and the page stays within its limit.
func TestPageBytes(t *testing.T) {
	r := reportOf(100)
	for i := range r.Scenarios {
		text := strings.Repeat("x", 1<<20)
		r.Scenarios[i].Steps = []Step{{Output: &text}}
	}
	var page bytes.Buffer
	if err := r.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if page.Len() > maxPageBytes+1<<20 || !strings.Contains(page.String(), "ecp view FILE") || strings.Count(page.String(), `<details class="scenario"`) != 10 {
		t.Errorf("%d bytes", page.Len())
	}
}

func TestDiffFiles(t *testing.T) {
	got := diffFiles("diff --git a/x y.go b/x y.go\n--- a/x y.go\n+++ b/x y.go\n@@ -1 +1,2 @@\n-a\n+b\n+c\n d\ndiff --git a/l b/l\nnew file mode 120000\n... 7 more bytes\n")
	want := []diffFile{
		{Name: "x y.go", Added: 2, Removed: 1, Open: true, Lines: []diffLine{
			{"head", "--- a/x y.go\n"}, {"head", "+++ b/x y.go\n"}, {"head", "@@ -1 +1,2 @@\n"}, {"removed", "-a\n"}, {"added", "+b\n"}, {"added", "+c\n"}, {"", " d\n"},
		}},
		{Name: "l", Open: true, Lines: []diffLine{{"", "new file mode 120000\n"}, {"", "... 7 more bytes\n"}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := diffFiles(""); got != nil {
		t.Error(got)
	}
	if got := diffFiles("diff --git a/x b/x\n" + strings.Repeat("+x\n", maxOpenDiff+1)); got[0].Open {
		t.Error("a long diff is unfolded")
	}
}

// For any diff, no line is lost, and all markup is escaped.
func FuzzDiffFiles(f *testing.F) {
	f.Add("diff --git a/x b/x\n+a\n-b\n")
	f.Add("+a\ndiff --git \n@@")
	f.Fuzz(func(t *testing.T, diff string) {
		lines := 0
		for _, file := range diffFiles(diff) {
			lines += len(file.Lines)
			if file.Added+file.Removed > len(file.Lines) {
				t.Errorf("%+v", file)
			}
		}
		heads := strings.Count("\n"+diff, "\ndiff --git ")
		if want := len(strings.SplitAfter(strings.TrimSuffix(diff, "\n"), "\n")); diff != "" && lines+heads != want {
			t.Errorf("%d lines and %d heads of %d: %q", lines, heads, want, diff)
		}
	})
}
