package runtime

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
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

// Plan lists the cases of a manifest in order, without those that the options filter out,
// and says what is odd about them.
func Plan(m *Manifest, o Options) (cases []Case, notes []string, err error) {
	variants := o.Variants
	if len(variants) == 0 {
		variants = []Variant{{}}
	}
	dir := filepath.Dir(m.Path)
	if problems := m.readRows(dir); len(problems) > 0 {
		return nil, nil, Problems(problems)
	}
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
