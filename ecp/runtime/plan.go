package runtime

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// Case is one scenario to run: of one variant, with one record of its dataset.
type Case struct {
	ID       string // its place in the manifest, with variant and record
	Scenario Scenario
	Labels   map[string]string // of the variant
	Record   map[string]string // of the dataset
	Repeat   int64

	digest  string // of all that decides what it does
	target  string // resolved
	variant Variant
}

// maxRecords bounds a dataset.
const maxRecords = 100000

// Plan lists the cases of a manifest in order, without those that the options filter out,
// and says what is odd about them.
func Plan(m *Manifest, o Options) (cases []Case, notes []string, err error) {
	variants := o.Variants
	if len(variants) == 0 {
		variants = []Variant{{}}
	}
	dir := filepath.Dir(m.Path)
	for _, v := range variants {
		target := m.Target
		if v.Target != "" {
			target = v.Target
		}
		if !isURL(target) && !o.Reference {
			var said []string
			if target, said = here(dir, o.Path).resolve(target); len(said) > 0 {
				notes = append(notes, said...)
			}
		}
		for i, sc := range m.Scenarios {
			list, err := expand(sc, i, dir, o)
			if err != nil {
				return nil, notes, err
			}
			for _, c := range list {
				c.variant, c.Labels, c.target = v, v.Labels, target
				c.ID += labels(v.Labels)
				c.Repeat = max(cmpOr(sc.Setup.Repeat, o.Repeat), 1)
				if o.Reference {
					c.Repeat = max(o.Repeat, 1)
				}
				c.digest = c.sum(o)
				if o.Filter == nil || o.Filter(c) {
					cases = append(cases, c)
				}
			}
		}
	}
	slices.Sort(notes)
	return cases, slices.Compact(notes), nil
}

func cmpOr(a, b int64) int64 {
	if a != 0 {
		return a
	}
	return b
}

func labels(m map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(m)) {
		b.WriteString("[" + k + "=" + m[k] + "]")
	}
	return b.String()
}

// expand returns a scenario's cases: one, or one for each record of its dataset.
func expand(sc Scenario, i int, dir string, o Options) ([]Case, error) {
	id := fmt.Sprint(i)
	if sc.Setup.Dataset == "" || o.Reference {
		return []Case{{ID: id, Scenario: sc}}, nil
	}
	path := sc.Setup.Dataset
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	records, err := readDataset(path)
	if err != nil {
		return nil, fmt.Errorf("scenario %q: dataset: %w", sc.Name, err)
	}
	var out []Case
	for n, r := range records {
		filled, err := fill(sc, r)
		if err != nil {
			return nil, fmt.Errorf("scenario %q: dataset %s, record %d: %w", sc.Name, sc.Setup.Dataset, n+1, err)
		}
		if filled.Name == sc.Name {
			filled.Name = fmt.Sprintf("%s #%d", sc.Name, n+1)
		}
		out = append(out, Case{ID: fmt.Sprintf("%s#%d", id, n+1), Scenario: filled, Record: r})
	}
	return out, nil
}

// readDataset reads records: a CSV with a header, or a JSON object in each line.
func readDataset(path string) ([]map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []map[string]string
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		out, err = readCSV(f)
	} else {
		out, err = readJSONL(f)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: it has no records", path)
	}
	return out, nil
}

func readCSV(r io.Reader) (out []map[string]string, err error) {
	lines := csv.NewReader(r)
	header, err := lines.Read()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	header[0] = strings.TrimPrefix(header[0], "\uFEFF")
	for {
		line, err := lines.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		record := map[string]string{}
		for i, name := range header {
			record[strings.TrimSpace(name)] = line[i]
		}
		if out = append(out, record); len(out) > maxRecords {
			return nil, fmt.Errorf("more than %d records", maxRecords)
		}
	}
}

func readJSONL(r io.Reader) (out []map[string]string, err error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	for {
		var object map[string]any
		err := dec.Decode(&object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("record %d: %w", len(out)+1, err)
		}
		record := map[string]string{}
		for k, v := range object {
			if text, ok := v.(string); ok {
				record[k] = text
			} else {
				raw, _ := json.Marshal(v) // it was JSON
				record[k] = string(raw)
			}
		}
		if out = append(out, record); len(out) > maxRecords {
			return nil, fmt.Errorf("more than %d records", maxRecords)
		}
	}
}

// fill puts a record's values into the texts of a scenario, where they say {{name}}.
func fill(sc Scenario, record map[string]string) (Scenario, error) {
	f := filler{record: record}
	out := sc
	out.Name = f.text(sc.Name)
	out.Steps = make([]Step, len(sc.Steps))
	for i, st := range sc.Steps {
		st.Input = f.text(st.Input)
		st.Graders = f.specs(st.Graders)
		st.Constraints.Checks = f.specs(st.Constraints.Checks)
		out.Steps[i] = st
	}
	if out.Setup.Config != nil {
		out.Setup.Config, _ = f.value(sc.Setup.Config).(map[string]any)
	}
	for _, st := range out.Steps {
		for _, s := range slices.Concat(st.Graders, st.Constraints.Checks) {
			if p := s.Check(); len(p) > 0 && f.err == nil {
				f.err = fmt.Errorf("%s: %s", p[0].Key, p[0].Message)
			}
		}
	}
	return out, f.err
}

// filler replaces {{name}} and remembers the first name that no record has.
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
		value, known := f.record[strings.TrimSpace(name)]
		if !known && f.err == nil {
			f.err = fmt.Errorf("there is no {{%s}}; it has %s", name, strings.Join(slices.Sorted(maps.Keys(f.record)), ", "))
		}
		b.WriteString(value)
		s = after
	}
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
		if s.Arguments != nil {
			s.Arguments, _ = f.value(s.Arguments).(map[string]any)
		}
	}
	return out
}

// sum is a digest of all that decides what a case does.
func (c Case) sum(o Options) string {
	data, err := json.Marshal(struct {
		Name      string
		Steps     []Step
		Setup     Setup
		Target    string
		Config    map[string]any
		Variant   Variant
		Repeat    int64
		Reference bool
	}{c.Scenario.Name, c.Scenario.Steps, c.Scenario.Setup, c.target, o.Config, c.variant, c.Repeat, o.Reference})
	if err != nil { // a number that JSON does not have
		data = fmt.Appendf(nil, "%+v %+v", c.Scenario, c.variant)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
