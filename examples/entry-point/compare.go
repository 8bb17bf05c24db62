package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// compare evaluates the manifest, and prints the results with and without the map side by side. It
// returns the exit code of the evaluation, which does not depend on whether answers are correct.
func compare(ctx context.Context, model string, repeat, jobs int, out io.Writer) (int, error) {
	dir, err := os.MkdirTemp("", "entry-point-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "report.json")
	args := []string{
		"run", "./cmd/ecp", "run", "--manifest", "examples/entry-point/manifest.yaml", "--json-out", file,
		"-j", strconv.Itoa(jobs), "--repeat", strconv.Itoa(repeat),
	}
	if model != "" {
		args = append(args, "--target", "go run ./examples/entry-point agent --own", "--config", "model="+model)
	}
	exit, err := proc.Run(ctx, proc.Spec{Path: "go", Args: args, Stdout: os.Stderr, Stderr: os.Stderr})
	if err != nil {
		return 1, fmt.Errorf("go run ./cmd/ecp: %w", err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return max(exit.Code, 1), fmt.Errorf("the evaluation wrote no report: %w", err)
	}
	r, err := report.Parse(data)
	if err != nil {
		return 1, err
	}
	if model == "" {
		model = "the mechanical searcher"
	}
	rows, err := tallyReport(r)
	if err != nil {
		return 1, err
	}
	return exit.Code, writeTable(out, model, rows)
}

// results are the results of all attempts at a question, with or without the map.
type results struct {
	calls             []int
	tokens            []int // input tokens of the requests
	correct, attempts int
}

// row contains the results of one question.
type row struct {
	id            string
	with, without results
}

// tallyReport returns the results of a report, in the order of its questions.
func tallyReport(r *report.Report) ([]row, error) {
	var rows []row
	for i := range r.Scenarios {
		sc := &r.Scenarios[i]
		id := sc.Record["id"]
		answer, err := regexp.Compile(`(^|[^\w])(` + sc.Record["answer"] + `)`)
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", id, err)
		}
		at := slices.IndexFunc(rows, func(r row) bool { return r.id == id })
		if at < 0 {
			at = len(rows)
			rows = append(rows, row{id: id})
		}
		w := &rows[at].without
		if strings.HasPrefix(sc.Name, "With the map") {
			w = &rows[at].with
		}
		attempts := [][]report.Step{sc.Steps}
		if len(sc.Attempts) > 0 {
			attempts = nil
			for k := range sc.Attempts {
				attempts = append(attempts, sc.Attempts[k].Steps)
			}
		}
		for _, steps := range attempts {
			w.add(steps, answer)
		}
	}
	return rows, nil
}

// add adds an attempt. The calls and tokens of an attempt that ended in an error are not counted.
func (w *results) add(steps []report.Step, answer *regexp.Regexp) {
	w.attempts++
	calls, tokens, right := 0, 0, false
	for i := range steps {
		calls += len(steps[i].ToolCalls)
		tokens += int(steps[i].Usage.Count(ecp.TokensInput))
		if steps[i].Status == "error" {
			return
		}
		right = steps[i].Output != nil && answer.MatchString(*steps[i].Output)
	}
	w.calls, w.tokens = append(w.calls, calls), append(w.tokens, tokens)
	if right {
		w.correct++
	}
}

// median returns the median of values, or 0 for an empty list.
func median(values []int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return float64(sorted[(n-1)/2]+sorted[n/2]) / 2
}

func writeTable(out io.Writer, model string, rows []row) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%s\twith the map\t\twithout\t\t\n", model)
	fmt.Fprintf(w, "question\tcalls\tright\tcalls\tright\t\n")
	var with, without results
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%g\t%d/%d\t%g\t%d/%d\t\n", r.id, median(r.with.calls), r.with.correct, r.with.attempts, median(r.without.calls), r.without.correct, r.without.attempts)
		with.merge(r.with)
		without.merge(r.without)
	}
	fmt.Fprintf(w, "median\t%g\t%d/%d\t%g\t%d/%d\t\n", median(with.calls), with.correct, with.attempts, median(without.calls), without.correct, without.attempts)
	if t := median(with.tokens); t > 0 {
		fmt.Fprintf(w, "tokens sent\t%g\t\t%g\t\t\n", t, median(without.tokens))
	}
	return w.Flush()
}

func (w *results) merge(o results) {
	w.calls, w.tokens = append(w.calls, o.calls...), append(w.tokens, o.tokens...)
	w.correct, w.attempts = w.correct+o.correct, w.attempts+o.attempts
}
