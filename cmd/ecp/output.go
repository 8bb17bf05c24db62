package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// finish writes the requested reports and a summary for human readers. If one cannot be written, it
// still writes the others; the error lists all failures.
func (f *runFlags) finish(r *report.Report, s streams) error {
	var errs []error
	if f.baselineReport != nil {
		r.Baseline = report.Compare(f.baselineReport, r, f.baseline)
	}
	for _, out := range []struct {
		path  string
		write func(io.Writer) error
	}{
		{f.html, r.HTML}, {f.jsonOut, r.JSON}, {f.auditOut, r.AuditJSON}, {f.junit, r.JUnit}, {f.markdown, r.Markdown},
	} {
		if out.path != "" {
			errs = append(errs, safeio.WriteOutput(out.path, out.write))
		}
	}
	if f.json {
		errs = append(errs, r.JSON(s.out))
	}
	if f.export != "" {
		fmt.Fprintf(s.err, "ecp: warning: --export %s: ecp sends results nowhere; the JSON report has all of them\n", printable(f.export))
	}
	summary(s.err, r)
	if os.Getenv("GITHUB_ACTIONS") != "" {
		errs = append(errs, f.github(r, s))
	}
	return errors.Join(errs...)
}

// github writes annotations for the runner of GitHub, and appends to the summary of the job.
func (f *runFlags) github(r *report.Report, s streams) error {
	w := s.out
	if f.json {
		w = s.err // stdout is for the report; the runner reads both
	}
	file := f.manifest
	if rel, err := filepath.Rel(os.Getenv("GITHUB_WORKSPACE"), r.Manifest); err == nil && filepath.IsLocal(rel) {
		file = filepath.ToSlash(rel)
	}
	err := r.Annotations(w, file)
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return err
	}
	out, openErr := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	return errors.Join(err, r.Markdown(out), out.Close())
}

// checkOutputs checks, before anything is run, that the reports can be written and that the baseline,
// which it reads, is a report.
func (f *runFlags) checkOutputs(ctx context.Context) (err error) {
	for _, out := range f.outputs() {
		if err := safeio.CheckOutput(out.path); err != nil {
			return fmt.Errorf("%s: %w", out.flag, err)
		}
		if err := out.checkReplaced(); err != nil {
			return fmt.Errorf("%s: %w", out.flag, err)
		}
	}
	if f.baseline != "" {
		if f.baselineReport, err = readReport(ctx, f.baseline); err != nil {
			return fmt.Errorf("--baseline: %w", err)
		}
	}
	return nil
}

// output is a file that a run writes, and the flag that names it.
type output struct{ flag, path string }

// checkReplaced fails if a report would replace a file that is not a report of its format, such as the
// source of an agent. It judges by how the file begins. The writer of run files has its own check.
func (o output) checkReplaced() error {
	begin, known := map[string]string{"--report": "<!doctype html", "--json-out": "{", "--audit-out": "{", "--junit": "<?xml", "--markdown": "## ", "--out": "{"}[o.flag]
	if info, err := os.Stat(o.path); !known || safeio.IsStream(o.path) || err != nil || info.Size() == 0 {
		return nil //nolint:nilerr // the file does not exist, or its writer reports the error
	}
	f, err := safeio.Open("", o.path)
	if err != nil {
		return nil //nolint:nilerr // a file that can only be written
	}
	defer f.Close()
	text := make([]byte, 64)
	n, _ := io.ReadFull(f, text)
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(string(text[:n]))), begin) {
		return fmt.Errorf("%s exists, but is not a report of this format; name another file, or remove it", o.path)
	}
	return nil
}

// outputs lists the files that the run writes.
func (f *runFlags) outputs() (out []output) {
	for _, o := range []output{
		{"--report", f.html},
		{"--json-out", f.jsonOut},
		{"--audit-out", f.auditOut},
		{"--junit", f.junit},
		{"--markdown", f.markdown},
		{"--run-file", f.runFile},
	} {
		if o.path != "" {
			out = append(out, o)
		}
	}
	return out
}

// checkDistinct fails if two outputs are one file, or if an output is the manifest or a run file whose
// results are used. Streams, such as /dev/stdout, take any number of outputs.
func (f *runFlags) checkDistinct() error {
	others := []output{{"the manifest", f.manifest}, {"--reuse-from", f.reuseFrom}}
	if f.runFile == "" {
		others = append(others, output{"--resume", f.resume})
	}
	for _, out := range f.outputs() {
		if safeio.IsStream(out.path) {
			continue
		}
		for _, other := range others {
			if other.path != "" && sameFile(out.path, other.path) {
				return fmt.Errorf("%s and %s are the same file, %s; each needs its own", other.flag, out.flag, out.path)
			}
		}
		others = append(others, out)
	}
	return nil
}

// sameFile reports whether two paths lead to one file, which need not exist.
func sameFile(a, b string) bool {
	one, errA := os.Stat(a)
	two, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(one, two)
	}
	return errA != nil && errB != nil && resolvedPath(a) == resolvedPath(b)
}

// resolvedPath returns the absolute path of a file that does not exist, with the symlinks of its folder
// resolved.
func resolvedPath(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		return filepath.Join(dir, filepath.Base(abs))
	}
	return abs
}

// summary prints the results of a run for human readers.
func summary(w io.Writer, r *report.Report) {
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		if sc.Status == report.Passed {
			continue
		}
		fmt.Fprintf(w, "%s  %s\n", strings.ToUpper(sc.Status), printable(sc.Title()))
		for _, e := range sc.Errors {
			fmt.Fprintf(w, "    error: %s\n", printable(e.Message))
		}
		for n, st := range sc.Steps {
			for _, c := range st.Checks {
				if !c.Passed && c.Error == "" {
					fmt.Fprintf(w, "    step %d, %s: %s\n", n+1, c.Type, printable(c.Reasoning))
				}
			}
		}
	}
	if r.Omitted != nil && r.Omitted.NotPassed > 0 {
		fmt.Fprintf(w, "... and %d more that did not pass\n", r.Omitted.NotPassed)
	}
	if b := r.Baseline; b != nil {
		if b.Warning != "" {
			fmt.Fprintln(w, "warning:", printable(b.Warning))
		}
		for _, name := range b.NewFail {
			fmt.Fprintln(w, "new failure:", printable(name))
		}
		for _, name := range b.NewPass {
			fmt.Fprintln(w, "new pass:", printable(name))
		}
	}
	_ = r.WriteVariants(w, printable)
	for _, line := range r.Sentences() {
		fmt.Fprintln(w, printable(line))
	}
	fmt.Fprintf(w, "%s: %d of %d checks passed; scenarios: %d passed, %d failed, %d errors; %.1f s",
		strings.ToUpper(r.Status), r.Passed, r.Total, r.Counts.Passed, r.Counts.Failed, r.Counts.Error, float64(r.DurationMS)/1000)
	if r.CostUSD != nil && *r.CostUSD > 0 {
		fmt.Fprintf(w, "; $%.4f", *r.CostUSD)
	}
	if b := r.Baseline; b != nil && len(b.NewFail) == 0 && r.Failed > 0 && b.Warning == "" {
		fmt.Fprint(w, "; no new failures")
	}
	if n := r.Reused() - r.Cached(); n > 0 {
		fmt.Fprintf(w, "; %d attempts of an earlier run were reused", n)
	}
	if n := r.Cached(); n > 0 {
		fmt.Fprintf(w, "; %d attempts are from the cache", n)
	}
	if r.NotRun > 0 {
		fmt.Fprintf(w, "; %d scenarios were not run", r.NotRun)
	}
	if r.Interrupted {
		fmt.Fprint(w, "; INTERRUPTED, scenarios are missing")
	}
	fmt.Fprintln(w)
}

// printable removes control characters from an agent's text, and joins its lines.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0, report.IsBidiControl(r):
			return -1
		}
		return r
	}, text)
}
