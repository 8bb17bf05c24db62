package runtime

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
)

// Case is one scenario to run: of one variant, with one record of its dataset.
type Case struct {
	ID         string   // which case it is, wherever it stands in the manifest
	Aliases    []string // what ID was under earlier ids of the scenario
	VariantKey string   // which agent, with which configuration
	Scenario   Scenario
	Labels     map[string]string // of the variant
	Record     map[string]string // of the dataset
	Repeat     int64

	digest  string // of all that decides what it does
	target  string // resolved
	server  string // URL that the attempt at hand uses; one of several that share the target's work
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
	ids := newIdentifier(m, o)
	var all []Case // of any variant
	for _, sc := range m.Scenarios {
		list, err := expand(sc, ids, o)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, list...)
	}
	for _, v := range variants {
		target := m.Target
		if v.Target != "" {
			target = v.Target
		}
		if !IsURL(target) && !o.Reference {
			var said []string
			if target, said = here(dir, o.Path).resolve(target); len(said) > 0 {
				notes = append(notes, said...)
			}
		}
		key := ids.variantKey(v)
		for _, c := range all {
			c.variant, c.Labels, c.target, c.VariantKey = v, v.Labels, target, key
			c.Repeat = max(cmp.Or(c.Scenario.Setup.Repeat, o.Repeat), 1)
			if o.Reference {
				c.Repeat = max(o.Repeat, 1)
			}
			if o.Filter == nil || o.Filter(c) {
				c.digest = ids.digest(c)
				cases = append(cases, c)
			}
		}
	}
	slices.Sort(notes)
	return cases, slices.Compact(notes), nil
}

// expand returns a scenario's cases: one, or one for each record of its dataset.
func expand(sc Scenario, ids *identifier, o Options) ([]Case, error) {
	id := scenarioID(sc)
	if sc.Setup.Dataset == "" || o.Reference {
		return []Case{ids.newCase(sc, id, nil, "")}, nil
	}
	path := sc.Setup.Dataset
	if !filepath.IsAbs(path) {
		path = filepath.Join(ids.dir, path)
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
		record, err := recordID(r, sc.Setup.IDField)
		if err != nil {
			return nil, fmt.Errorf("scenario %q: dataset %s, record %d: %w", sc.Name, sc.Setup.Dataset, n+1, err)
		}
		if filled.Name == sc.Name {
			filled.Name = fmt.Sprintf("%s #%d", sc.Name, n+1)
		}
		out = append(out, ids.newCase(filled, id, r, record))
	}
	return out, nil
}
