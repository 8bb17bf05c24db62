package report

import (
	"fmt"
	"slices"
)

// Comparison lists the changes since an earlier report.
type Comparison struct {
	RunID   string   `json:"run_id,omitempty"`
	Path    string   `json:"path"`
	NewFail []string `json:"new_fail"` // checks and scenarios that no longer pass, or are new and do not pass
	NewPass []string `json:"new_pass"`
	Missing []string `json:"missing"` // scenarios that only the baseline has
	Added   []string `json:"added"`   // scenarios that only this run has
	// Unpaired are scenarios of variants that the baseline did not evaluate.
	Unpaired []string   `json:"unpaired,omitempty"`
	Warning  string     `json:"warning,omitempty"` // why the comparison is unreliable or empty
	PassRate [2]float64 `json:"pass_rate"`         // of checks: in the baseline, and in this run
	// Pairs compare each variant with the same variant in the baseline.
	Pairs []Pair `json:"pairs,omitempty"`
}

// Compare returns the changes since a baseline. It matches scenarios by id and variant, or by name if
// the baseline has no stable ids, and checks by position.
func Compare(old, now *Report, path string) *Comparison {
	c := &Comparison{RunID: old.RunID, Path: path, NewFail: []string{}, NewPass: []string{}, Missing: []string{}, Added: []string{}, PassRate: [2]float64{old.passRate(), now.passRate()}}
	before, variants := old.index()
	_, wanted := now.index()
	if old.SchemaVersion < firstKeyedVersion {
		c.Warning = "the baseline is a report of an older version, or of another program: scenarios are matched by their names"
	}
	matched := map[*Scenario]bool{}
	for i := range now.Scenarios {
		s := &now.Scenarios[i]
		o := before.find(s)
		if o == nil && !variants[s.VariantKey] && old.SchemaVersion >= firstKeyedVersion {
			c.Unpaired = append(c.Unpaired, s.Title())
			continue
		}
		if o == nil || matched[o] {
			c.Added = append(c.Added, s.Title())
			if s.Status != Passed && !onlyJudgmentFailed(s.Status, s.Errors) {
				c.add(false, fmt.Sprintf("%s: %s, is new", s.Title(), s.Status))
			}
			continue
		}
		matched[o] = true
		c.compareScenario(o, s)
	}
	for i := range old.Scenarios {
		if s := &old.Scenarios[i]; !matched[s] && (wanted[s.VariantKey] || old.SchemaVersion < firstKeyedVersion) {
			c.Missing = append(c.Missing, s.Title())
		}
	}
	if old.SchemaVersion >= firstKeyedVersion {
		c.Pairs = comparePairs(old, now)
	}
	if c.NothingCompared(now) {
		c.Warning = "nothing was compared: the baseline evaluated another agent, or one that was configured otherwise (target " + old.Target + ")"
	}
	return c
}

// comparePairs compares the variants that both reports have.
func comparePairs(old, now *Report) (out []Pair) {
	before := old.Sides()
	for _, b := range now.Sides() {
		for _, a := range before {
			if a.Key != b.Key {
				continue
			}
			variant := b.Name
			if a.Name, b.Name = "the baseline", "this run"; variant != "" {
				a.Name, b.Name = "the baseline with "+variant, variant
			}
			out = append(out, NewPair(a, b))
		}
	}
	setHolm(out)
	return out
}

// Regressed reports whether a variant got significantly worse.
func (c *Comparison) Regressed() bool {
	return slices.ContainsFunc(c.Pairs, func(p Pair) bool { return p.Worse() })
}

// NothingCompared reports whether there was nothing to compare.
func (c *Comparison) NothingCompared(now *Report) bool {
	return len(now.Scenarios) > 0 && len(c.Unpaired) == len(now.Scenarios)
}

// Comparable reports whether a report has one of the variants with these keys. It returns true for
// reports of versions in which variants had no keys.
func (r *Report) Comparable(keys []string) bool {
	_, variants := r.index()
	return r.SchemaVersion < firstKeyedVersion || slices.ContainsFunc(keys, func(key string) bool { return variants[key] })
}

// index contains the scenarios of a report by id and variant or, unless keyed is set, by title.
type index struct {
	keyed     bool
	scenarios map[string]*Scenario
}

// index returns an index of the scenarios, and the keys of the variants.
func (r *Report) index() (out index, variants map[string]bool) {
	out = index{keyed: r.SchemaVersion >= firstKeyedVersion, scenarios: map[string]*Scenario{}}
	variants = map[string]bool{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		variants[s.VariantKey] = true
		out.scenarios[out.key(s.ID, s)] = s
	}
	return out, variants
}

func (x index) key(id string, s *Scenario) string {
	if x.keyed {
		return id + "\x00" + s.VariantKey
	}
	return s.Title()
}

// find returns the scenario with the id of s, or otherwise with one of its earlier ids.
func (x index) find(s *Scenario) *Scenario {
	for _, id := range append([]string{s.ID}, s.Aliases...) {
		if found := x.scenarios[x.key(id, s)]; found != nil {
			return found
		}
	}
	return nil
}

// NotPassed returns a function that reports whether a scenario did not pass in this report.
// Scenarios are matched as in Compare.
func (r *Report) NotPassed() func(*Scenario) bool {
	x, _ := r.index()
	return func(s *Scenario) bool {
		found := x.find(s)
		return found != nil && found.Status != Passed
	}
}

func (r *Report) passRate() float64 {
	if r.Total <= 0 {
		return 0
	}
	return float64(min(max(r.Passed, 0), r.Total)) / float64(r.Total)
}

func (c *Comparison) compareScenario(old, now *Scenario) {
	checks := 0
	for i := range now.Steps {
		if i >= len(old.Steps) {
			break
		}
		for j, check := range now.Steps[i].Checks {
			if j >= len(old.Steps[i].Checks) {
				break
			}
			was := old.Steps[i].Checks[j]
			if was.Passed == check.Passed || was.Type != check.Type || was.Error != "" || check.Error != "" {
				continue
			}
			checks++
			c.add(check.Passed, fmt.Sprintf("%s: step %d, check %d (%s)", now.Title(), i+1, j+1, check.Type))
		}
	}
	known := !onlyJudgmentFailed(old.Status, old.Errors) && !onlyJudgmentFailed(now.Status, now.Errors)
	if checks == 0 && known && (old.Status == Passed) != (now.Status == Passed) {
		c.add(now.Status == Passed, fmt.Sprintf("%s: %s, was %s", now.Title(), now.Status, old.Status))
	}
}

func (c *Comparison) add(passed bool, what string) {
	if passed {
		c.NewPass = append(c.NewPass, what)
	} else {
		c.NewFail = append(c.NewFail, what)
	}
}
