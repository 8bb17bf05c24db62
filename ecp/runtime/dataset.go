package runtime

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Limits of a dataset.
const (
	maxRecords = 100000
	maxDataset = 256 << 20 // bytes
)

// record is one record of a dataset. Records with the same names share the slice, to save memory.
type record struct{ names, values []string }

func (r record) fields() map[string]string {
	out := make(map[string]string, len(r.names))
	for i, name := range r.names {
		out[name] = r.values[i]
	}
	return out
}

// readDataset reads the records of a CSV file with a header, or of a file with one JSON object per
// line.
func readDataset(path string) ([]record, error) {
	data, err := readDatasetFile(path)
	if err != nil {
		return nil, err
	}
	out, err := parseDataset(data, strings.EqualFold(filepath.Ext(path), ".csv"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

// readDatasetFile reads the file of a dataset, which must be UTF-8.
func readDatasetFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", path)
	case info.Size() > maxDataset:
		return nil, fmt.Errorf("%s: it is larger than %d MiB", path, maxDataset>>20)
	}
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
	case safeio.IsUTF16(data):
		err = fmt.Errorf("%s: the text is UTF-16; save it as UTF-8", path)
	case !utf8.Valid(data):
		err = fmt.Errorf("%s: not UTF-8 text; save it as UTF-8", path)
	}
	return data, err
}

// parseDataset parses a dataset. A dataset without records is an error.
func parseDataset(data []byte, isCSV bool) (out []record, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if isCSV {
		out, err = readCSV(bytes.NewReader(data))
	} else {
		out, err = readJSONL(bytes.NewReader(data))
	}
	if err == nil && len(out) == 0 {
		err = errors.New("it has no records")
	}
	return out, err
}

func readCSV(r io.Reader) (out []record, err error) {
	lines := csv.NewReader(r)
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range header {
		header[i] = strings.TrimSpace(header[i])
		if slices.Contains(header[:i], header[i]) {
			return nil, fmt.Errorf("two columns are called %q", header[i])
		}
	}
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if out = append(out, record{header, line}); len(out) > maxRecords {
			return nil, fmt.Errorf("more than %d records", maxRecords)
		}
	}
}

func readJSONL(r io.Reader) (out []record, err error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	for {
		var object map[string]any
		err := dec.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err == nil && object == nil {
			err = errors.New("null is not an object")
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(out)+1, err)
		}
		next := record{names: slices.Sorted(maps.Keys(object))}
		if n := len(out); n > 0 && slices.Equal(out[n-1].names, next.names) {
			next.names = out[n-1].names
		}
		for _, name := range next.names {
			text, ok := object[name].(string)
			if !ok {
				raw, _ := json.Marshal(object[name]) // it cannot fail: the value came from JSON
				text = string(raw)
			}
			next.values = append(next.values, text)
		}
		if out = append(out, next); len(out) > maxRecords {
			return nil, fmt.Errorf("more than %d records", maxRecords)
		}
	}
}

// fill replaces {{name}} in the texts of a scenario with the values of a record.
func fill(sc Scenario, record map[string]string) (Scenario, error) {
	f := filler{record: record}
	out := sc
	out.Name = f.text(sc.Name)
	out.Steps = make([]Step, len(sc.Steps))
	for i, st := range sc.Steps {
		st.Input = f.text(st.Input)
		st.Graders = f.specs(st.Graders)
		st.Constraints.Checks = f.specs(st.Constraints.Checks)
		st.Constraints.ForbiddenTools = f.texts(st.Constraints.ForbiddenTools)
		out.Steps[i] = st
	}
	if out.Setup.Config != nil {
		out.Setup.Config, _ = f.value(sc.Setup.Config).(map[string]any)
	}
	if w := out.Setup.Workspace; w != nil {
		out.Setup.Workspace = &Fixture{Copy: f.text(w.Copy), Git: w.Git}
	}
	out.Setup.Tests = f.text(sc.Setup.Tests)
	for _, st := range out.Steps {
		for _, s := range slices.Concat(st.Graders, st.Constraints.Checks) {
			if p := s.Check(); len(p) > 0 && f.err == nil {
				f.err = fmt.Errorf("%s: %s", p[0].Key, p[0].Message)
			}
		}
	}
	return out, f.err
}

// filler replaces {{name}} with the values of a record. err is set by the first name that the record
// does not have.
type filler struct {
	record map[string]string
	err    error
}

func (f *filler) text(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		name, after, closed := strings.Cut(rest, "}}")
		if !ok || !closed {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(before)
		name = strings.TrimSpace(name)
		value, known := f.record[name]
		if !known && f.err == nil {
			f.err = fmt.Errorf("unknown {{%s}}; the record has %s", name, strings.Join(slices.Sorted(maps.Keys(f.record)), ", "))
		}
		b.WriteString(value)
		s = after
	}
}

// texts fills a list. It returns nil for nil, because an empty list has another meaning.
func (f *filler) texts(list []string) []string {
	out := slices.Clone(list)
	for i := range out {
		out[i] = f.text(out[i])
	}
	return out
}

func (f *filler) value(v any) any {
	switch v := v.(type) {
	case string:
		return f.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = f.value(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k := range v {
			out[k] = f.value(v[k])
		}
		return out
	}
	return v
}

func (f *filler) specs(list []grade.Spec) []grade.Spec {
	out := slices.Clone(list)
	for i := range out {
		s := &out[i]
		if s.Value != nil {
			v := f.text(*s.Value)
			s.Value = &v
		}
		s.Pattern, s.Prompt, s.ToolName, s.Path, s.Run = f.text(s.Pattern), f.text(s.Prompt), f.text(s.ToolName), f.text(s.Path), f.text(s.Run)
		s.Tools, s.Only, s.Includes = f.texts(s.Tools), f.texts(s.Only), f.texts(s.Includes)
		if s.Arguments != nil {
			s.Arguments, _ = f.value(s.Arguments).(map[string]any)
		}
	}
	return out
}
