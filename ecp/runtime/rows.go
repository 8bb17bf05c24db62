package runtime

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// Rows is a dataset that provides the steps of a scenario (protocol 1.0): each row is a step, with an
// input and an optional expected output. constraints.scenario.dataset, in contrast, runs the scenario
// once for each record.
type Rows struct {
	Type          string // csv or jsonl
	Source        string // a file, relative to the manifest
	Input, Output string // columns

	outputRequired bool   // the manifest names the output column, so it must exist
	key            string // path of the key source in the manifest
	line, col      int    // position of source in the manifest
}

// maxCell limits a cell of a CSV file, in characters, as in the reference.
const maxCell = 131072

func (e element) rows() *Rows {
	line, col := e.line, e.col
	e = e.mapping("type", "source", "input_column", "output_column")
	kind, source := e.required("type"), e.required("source")
	r := &Rows{Type: kind.oneOf("csv", "jsonl"), Source: source.nonEmptyText(), Input: "input", Output: "output", line: line, col: col, key: source.path}
	if !source.missing() {
		r.line, r.col = source.line, source.col
	}
	if v := e.get("input_column"); !v.missing() {
		r.Input = v.text()
	}
	if v := e.get("output_column"); !v.missing() {
		r.Output, r.outputRequired = v.text(), true
	}
	return r
}

// readRows reads the steps of scenarios from their datasets. dir is the folder of the manifest. It
// skips scenarios that already have steps, so it may be called again.
func (m *Manifest) readRows(dir string) (problems []Problem) {
	for i := range m.Scenarios {
		sc := &m.Scenarios[i]
		r := sc.Rows
		if r == nil || len(sc.Steps) > 0 {
			continue
		}
		path := r.Source
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		data, err := readDatasetFile(path)
		if err == nil {
			sc.Steps, err = r.steps(data)
		}
		if err != nil {
			problems = append(problems, Problem{Line: r.line, Column: r.col, Key: r.key, Message: err.Error()})
		}
	}
	return problems
}

// steps parses a dataset. A dataset without rows is an error.
func (r *Rows) steps(data []byte) ([]Step, error) {
	read := r.readJSONL
	if r.Type == "csv" {
		read = r.readCSV
	}
	steps, err := read(strings.TrimPrefix(string(data), "\ufeff"))
	if err == nil && len(steps) == 0 {
		err = errors.New("the dataset has no rows")
	}
	return steps, err
}

// step returns the step for a row. An empty output is not checked.
func (r *Rows) step(input, output string) Step {
	st := Step{Input: input}
	if output != "" {
		st.Graders = []grade.Spec{{Type: grade.TextMatch, Field: grade.PublicOutput, Condition: "equals", Value: &output}}
	}
	return st
}

func (r *Rows) readCSV(text string) (out []Step, err error) {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text) // all of these end a row
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord, lines.LazyQuotes = -1, true
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	input, output := lastColumn(header, r.Input), lastColumn(header, r.Output)
	for name, at := range map[string]int{r.Input: input, r.Output: output} {
		if at < 0 && (name == r.Input || r.outputRequired) {
			return nil, fmt.Errorf("the dataset has no column %q; it has %s", name, clip(fmt.Sprintf("%q", header), maxShown))
		}
	}
	for n := 1; ; n++ {
		line, err := lines.Read()
		switch {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		case len(line) <= input:
			return nil, fmt.Errorf("row %d has no cell in the column %q", n, r.Input)
		case len(out) == maxRecords:
			return nil, fmt.Errorf("more than %d rows", maxRecords)
		case slices.ContainsFunc(line, func(cell string) bool { return utf8.RuneCountInString(cell) > maxCell }):
			return nil, fmt.Errorf("row %d has a cell of more than %d characters", n, maxCell)
		}
		expected := ""
		if output >= 0 && output < len(line) {
			expected = line[output]
		}
		out = append(out, r.step(line[input], expected))
	}
}

// lastColumn returns the index of the last column with a name, or -1.
func lastColumn(header []string, name string) int {
	for i := len(header) - 1; i >= 0; i-- {
		if header[i] == name {
			return i
		}
	}
	return -1
}

func (r *Rows) readJSONL(text string) (out []Step, err error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		if strings.TrimSpace(line) == "" {
			continue
		}
		var row map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &row); err != nil || row == nil {
			return nil, fmt.Errorf("line %d is not a JSON object", n)
		}
		var input string
		if err := json.Unmarshal(row[r.Input], &input); err != nil || string(row[r.Input]) == "null" {
			return nil, fmt.Errorf("line %d: %q must be a string", n, r.Input)
		}
		var expected *string
		if raw, ok := row[r.Output]; ok && json.Unmarshal(raw, &expected) != nil {
			return nil, fmt.Errorf("line %d: %q must be a string or null", n, r.Output)
		}
		if len(out) == maxRecords {
			return nil, fmt.Errorf("more than %d rows", maxRecords)
		}
		out = append(out, r.step(input, deref(expected)))
	}
	return out, nil
}
