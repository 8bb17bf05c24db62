package runtime

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
)

// Case is one scenario to run: for one variant, with one record of its dataset.
type Case struct {
	ID         string   // identifies the case regardless of its position in the manifest
	Aliases    []string // the IDs that the case has with earlier ids of its scenario
	VariantKey string   // identifies the agent and its configuration
	Scenario   Scenario
	Labels     map[string]string // of the variant
	Record     map[string]string // of the dataset
	Repeat     int64

	Position Position // in the plan

	recordHash [16]byte

	scenario string // id of the scenario
	attempt  int    // the current attempt, from 1
	digest   string // of everything that determines the result, except the agent's self-description
	target   string // resolved command line, or URL
	server   string // the URL that the current attempt uses, if target is a URL
	variant  Variant
}

// Position is the position of a case in a plan, from 0. The same manifest and options result in the
// same positions.
type Position struct {
	Variant  int `json:"variant"`
	Scenario int `json:"scenario"`
	Record   int `json:"record"`
}

// Plan is the sequence of cases for a manifest and options. It creates them one by one, because there
// may be millions.
type Plan struct {
	Notes []string // remarks about how targets were resolved
	Total int      // cases that Options.Filter selects

	caseCount int // cases, including those that are not selected
	manifest  *Manifest
	opts      Options
	ids       *identifier
	records   [][]record   // of each scenario's dataset; nil if it has none
	cases     [][]identity // of each scenario
	variants  []plannedVariant
}

// VariantKeys lists the keys of the planned variants.
func (p *Plan) VariantKeys() []string {
	var keys []string
	for _, v := range p.variants {
		keys = append(keys, v.key)
	}
	return keys
}

// plannedVariant is a variant with its key and its resolved target.
type plannedVariant struct {
	Variant
	key, target string
}

// NewPlan plans the cases of a manifest. It reads the datasets, and returns an error if a scenario or
// a record cannot be run.
func NewPlan(m *Manifest, o Options) (*Plan, error) {
	p := &Plan{manifest: m, opts: o, ids: newIdentifier(m, o), records: make([][]record, len(m.Scenarios)), cases: make([][]identity, len(m.Scenarios))}
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
	anyServer := slices.ContainsFunc(p.variants, func(v plannedVariant) bool { return IsURL(v.target) })
	perVariant := 0
	for i, sc := range m.Scenarios {
		if err := sc.checkImage(); err != nil && !o.Reference {
			return nil, fmt.Errorf("scenario %q: %w", sc.Name, err)
		}
		if sc.Setup.Dataset == "" && !o.Reference {
			if err := sc.Setup.check(p.ids.dir, anyServer); err != nil {
				return nil, fmt.Errorf("scenario %q: %w", sc.Name, err)
			}
		}
		n, err := p.readCases(i, sc, anyServer)
		if err != nil {
			return nil, err
		}
		perVariant += n
	}
	p.ids.keyCounts = nil
	slices.Sort(p.Notes)
	p.Notes = slices.Compact(p.Notes)
	p.caseCount = perVariant * len(variants)
	p.Total = p.caseCount
	if o.Filter != nil {
		p.Total = 0
		for _, c := range p.walk(false, nil) {
			if o.Filter(c) {
				p.Total++
			}
		}
	}
	return p, nil
}

// readCases reads the dataset of a scenario, and returns the number of its cases per variant. anyServer
// means that the agent of a variant is a server.
func (p *Plan) readCases(i int, sc Scenario, anyServer bool) (int, error) {
	if sc.Setup.Dataset == "" || p.opts.Reference {
		caseID, err := p.ids.identify(sc, nil)
		p.cases[i] = []identity{caseID}
		return 1, err
	}
	path := sc.Setup.Dataset
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.ids.dir, path)
	}
	var err error
	if p.records[i], err = readDataset(path); err != nil {
		return 0, fmt.Errorf("scenario %q: dataset: %w", sc.Name, err)
	}
	p.cases[i] = make([]identity, len(p.records[i]))
	for n, row := range p.records[i] {
		r := row.fields()
		filled, err := fill(sc, r)
		if err == nil {
			p.cases[i][n], err = p.ids.identify(sc, r)
		}
		if err == nil {
			err = filled.Setup.check(p.ids.dir, anyServer)
		}
		if err != nil {
			return 0, fmt.Errorf("scenario %q: dataset %s, record %d: %w", sc.Name, sc.Setup.Dataset, n+1, err)
		}
	}
	return len(p.records[i]), nil
}

// resolve determines the key and the target of a variant.
func (p *Plan) resolve(v Variant) plannedVariant {
	out := plannedVariant{Variant: v, key: p.ids.variantKey(v), target: cmp.Or(v.Target, p.manifest.Target)}
	if !IsURL(out.target) && !p.opts.Reference {
		var notes []string
		out.target, notes = hostEnv(p.ids.dir, p.opts.Path).resolve(out.target)
		p.Notes = append(p.Notes, notes...)
	}
	return out
}

// Judges returns the models that the llm_judge graders of selected cases name, each with the name
// of a scenario. A grader that names none has the model "".
func (p *Plan) Judges() map[string]string {
	out := map[string]string{}
	for i, sc := range p.manifest.Scenarios {
		models := sc.judgeModels()
		if len(models) == 0 || !p.selectsScenario(i) {
			continue
		}
		for _, model := range models {
			if _, ok := out[model]; !ok {
				out[model] = sc.Name
			}
		}
	}
	return out
}

func (s Scenario) judgeModels() (models []string) {
	for _, st := range s.Steps {
		for _, g := range st.Graders {
			if g.Type == grade.LLMJudge {
				models = append(models, g.Model)
			}
		}
	}
	return models
}

// selectsScenario reports whether Options.Filter selects a case of the scenario at an index.
func (p *Plan) selectsScenario(scenario int) bool {
	if p.opts.Filter == nil {
		return true
	}
	for variant := range p.variants {
		for n := range p.cases[scenario] {
			if p.opts.Filter(p.newCase(Position{variant, scenario, n}, false)) {
				return true
			}
		}
	}
	return false
}

// Cases yields the selected cases in the manifest's order, variant by variant.
func (p *Plan) Cases() iter.Seq[Case] {
	return func(yield func(Case) bool) {
		for _, c := range p.selected(nil) {
			if !yield(c) {
				return
			}
		}
	}
}

// selected yields the cases that Options.Filter selects, with their indexes in the whole plan, except
// those at indexes that are skipped. skip may be nil.
func (p *Plan) selected(skip func(index int) bool) iter.Seq2[int, Case] {
	return func(yield func(int, Case) bool) {
		for index, c := range p.walk(false, skip) {
			if (p.opts.Filter == nil || p.opts.Filter(c)) && !yield(index, p.withDigest(c)) {
				return
			}
		}
	}
}

// casesWithDigests yields all cases with their digests. With brief, the texts of their scenarios may lack the
// values of their records, which takes less time for many records.
func (p *Plan) casesWithDigests(brief bool) iter.Seq2[int, Case] {
	return func(yield func(int, Case) bool) {
		for index, c := range p.walk(brief, nil) {
			if !yield(index, p.withDigest(c)) {
				return
			}
		}
	}
}

func (p *Plan) withDigest(c Case) Case {
	c.digest = p.ids.digest(c, p.manifest.Scenarios[c.Position.Scenario])
	return c
}

// walk yields all cases without their digests. See casesWithDigests for brief.
func (p *Plan) walk(brief bool, skip func(index int) bool) iter.Seq2[int, Case] {
	return func(yield func(int, Case) bool) {
		index := 0
		for variant := range p.variants {
			for i, sc := range p.manifest.Scenarios {
				raw := brief && !sc.identityHasFields()
				for n := range p.cases[i] {
					if (skip == nil || !skip(index)) && !yield(index, p.newCase(Position{variant, i, n}, raw)) {
						return
					}
					index++
				}
			}
		}
	}
}

// identityHasFields reports whether the keys of a scenario's cases depend on texts that are filled in
// from records: aliases of records, or the paths of folders.
func (s Scenario) identityHasFields() bool {
	w := s.Setup.Workspace
	return len(s.Setup.Aliases) > 0 || w != nil && strings.Contains(w.Copy, "{{") || strings.Contains(s.Setup.Tests, "{{")
}

// newCase returns the case at a position, without its digest. If it is raw, its scenario and its
// record are not filled in.
func (p *Plan) newCase(at Position, raw bool) Case {
	sc := p.manifest.Scenarios[at.Scenario]
	id := scenarioID(sc)
	var record map[string]string
	if records := p.records[at.Scenario]; records != nil && !raw {
		record = records[at.Record].fields()
		sc = withRecord(sc, record, at.Record)
	}
	c := p.ids.newCase(sc, id, p.cases[at.Scenario][at.Record], record)
	c.Position = at
	p.complete(&c)
	return c
}

// complete sets the fields of a case that come from its variant.
func (p *Plan) complete(c *Case) {
	v := p.variants[c.Position.Variant]
	c.variant, c.Labels, c.target, c.VariantKey = v.Variant, v.Labels, v.target, v.key
	c.Repeat = max(cmp.Or(c.Scenario.Setup.Repeat, p.opts.Repeat), 1)
	if p.opts.Reference {
		c.Repeat = max(p.opts.Repeat, 1)
	}
}

// Target returns the agent of the case: a command line or a URL.
func (c Case) Target() string { return c.target }

// Model returns the model in the configuration of a case's agent, or "".
func (p *Plan) Model(c Case) string {
	for _, config := range []map[string]any{c.variant.Config, c.Scenario.Setup.Config, p.opts.Config} {
		if model, ok := config["model"].(string); ok {
			return model
		}
	}
	return ""
}

// At returns the case at a position. id is its ID, as Cases returned it.
func (p *Plan) At(at Position, id string) (Case, error) {
	if at.Variant < 0 || at.Variant >= len(p.variants) || at.Scenario < 0 || at.Scenario >= len(p.manifest.Scenarios) {
		return Case{}, fmt.Errorf("the manifest has no case at %+v", at)
	}
	sc, records := p.manifest.Scenarios[at.Scenario], p.records[at.Scenario]
	c := Case{ID: id, Position: at, scenario: scenarioID(sc), Scenario: sc}
	if records != nil {
		if at.Record < 0 || at.Record >= len(records) {
			return Case{}, fmt.Errorf("the manifest has no case at %+v", at)
		}
		c.Record = records[at.Record].fields()
		c.Scenario = withRecord(sc, c.Record, at.Record)
	}
	p.complete(&c)
	return c, nil
}

// withRecord returns a scenario with the values of a record. A name without placeholders gets the
// number of the record.
func withRecord(sc Scenario, record map[string]string, n int) Scenario {
	filled, _ := fill(sc, record) // readCases has checked this
	if filled.Name == sc.Name {
		filled.Name = fmt.Sprintf("%s #%d", sc.Name, n+1)
	}
	return filled
}
