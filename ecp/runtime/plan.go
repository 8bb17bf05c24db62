package runtime

import (
	"cmp"
	"fmt"
	"iter"
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

	attempt int    // the one at hand, from 1
	digest  string // of all that decides what it does
	target  string // resolved
	server  string // URL that the attempt at hand uses; one of several that share the target's work
	variant Variant
}

// Plan is what a manifest comes to with some options: its cases, made one after the other,
// since there may be millions.
type Plan struct {
	Notes []string // what is odd about it
	Total int      // cases

	manifest *Manifest
	opts     Options
	ids      *identifier
	records  [][]record // of each scenario's dataset; nil if it has none
	variants []planned
}

// planned is a variant with what follows from it.
type planned struct {
	Variant
	key, target string
}

// NewPlan reads what the manifest's cases are made of, and finds what is wrong with them.
func NewPlan(m *Manifest, o Options) (*Plan, error) {
	p := &Plan{manifest: m, opts: o, ids: newIdentifier(m, o), records: make([][]record, len(m.Scenarios))}
	if problems := m.readRows(p.ids.dir); len(problems) > 0 {
		return nil, Problems(problems)
	}
	variants := o.Variants
	if len(variants) == 0 {
		variants = []Variant{{}}
	}
	for _, v := range variants {
		p.variants = append(p.variants, p.resolve(v))
	}
	servers := slices.ContainsFunc(p.variants, func(v planned) bool { return IsURL(v.target) })
	base := 0
	for i, sc := range m.Scenarios {
		if sc.Setup.Dataset == "" && !o.Reference {
			if err := sc.Setup.check(p.ids.dir, servers); err != nil {
				return nil, fmt.Errorf("scenario %q: %w", sc.Name, err)
			}
		}
		n, err := p.read(i, sc, servers)
		if err != nil {
			return nil, err
		}
		base += n
	}
	slices.Sort(p.Notes)
	p.Notes = slices.Compact(p.Notes)
	p.Total = base * len(variants)
	if o.Filter != nil {
		p.Total = 0
		for range p.chosen() {
			p.Total++
		}
	}
	return p, nil
}

// read reads a scenario's dataset and returns how many cases of a variant it makes.
func (p *Plan) read(i int, sc Scenario, servers bool) (int, error) {
	if sc.Setup.Dataset == "" || p.opts.Reference {
		return 1, nil
	}
	path := sc.Setup.Dataset
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.ids.dir, path)
	}
	var err error
	if p.records[i], err = readDataset(path); err != nil {
		return 0, fmt.Errorf("scenario %q: dataset: %w", sc.Name, err)
	}
	for n, row := range p.records[i] {
		r := row.fields()
		filled, err := fill(sc, r)
		if err == nil {
			_, err = recordID(r, sc.Setup.IDField)
		}
		if err == nil {
			err = filled.Setup.check(p.ids.dir, servers)
		}
		if err != nil {
			return 0, fmt.Errorf("scenario %q: dataset %s, record %d: %w", sc.Name, sc.Setup.Dataset, n+1, err)
		}
	}
	return len(p.records[i]), nil
}

// resolve finds the agent of a variant.
func (p *Plan) resolve(v Variant) planned {
	out := planned{Variant: v, key: p.ids.variantKey(v), target: cmp.Or(v.Target, p.manifest.Target)}
	if !IsURL(out.target) && !p.opts.Reference {
		var notes []string
		out.target, notes = here(p.ids.dir, p.opts.Path).resolve(out.target)
		p.Notes = append(p.Notes, notes...)
	}
	return out
}

// Cases makes the cases in the manifest's order, variant after variant.
func (p *Plan) Cases() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for c := range p.chosen() {
			c.digest = p.ids.digest(c)
			if !yield(c) {
				return
			}
		}
	}
}

// chosen makes the cases that the options leave, without their digests.
func (p *Plan) chosen() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for _, v := range p.variants {
			p.ids.seen = map[string]int{}
			for i, sc := range p.manifest.Scenarios {
				for c := range p.scenario(sc, p.records[i]) {
					c.variant, c.Labels, c.target, c.VariantKey = v.Variant, v.Labels, v.target, v.key
					c.Repeat = max(cmp.Or(c.Scenario.Setup.Repeat, p.opts.Repeat), 1)
					if p.opts.Reference {
						c.Repeat = max(p.opts.Repeat, 1)
					}
					if (p.opts.Filter == nil || p.opts.Filter(c)) && !yield(c) {
						return
					}
				}
			}
		}
	}
}

// scenario makes a scenario's cases: one, or one for each record of its dataset.
func (p *Plan) scenario(sc Scenario, records []record) iter.Seq[Case] {
	id := scenarioID(sc)
	return func(yield func(Case) bool) {
		if records == nil {
			yield(p.ids.newCase(sc, id, nil, ""))
			return
		}
		for n, row := range records {
			r := row.fields()
			filled, _ := fill(sc, r)                   // which read has tried
			record, _ := recordID(r, sc.Setup.IDField) // and this
			if filled.Name == sc.Name {
				filled.Name = fmt.Sprintf("%s #%d", sc.Name, n+1)
			}
			if !yield(p.ids.newCase(filled, id, r, record)) {
				return
			}
		}
	}
}
