package report

import "fmt"

// Comparison is what changed against an earlier report.
type Comparison struct {
	RunID    string     `json:"run_id,omitempty"`
	Path     string     `json:"path"`
	NewFail  []string   `json:"new_fail"` // checks and scenarios that do not pass any more, or are new and do not
	NewPass  []string   `json:"new_pass"`
	Missing  []string   `json:"missing"`   // scenarios that are in the baseline only
	Added    []string   `json:"added"`     // scenarios that are in this run only
	PassRate [2]float64 `json:"pass_rate"` // of checks: then and now
}

// Compare finds what changed since a baseline. Scenarios are matched by id and name, checks
// by their place.
func Compare(old, now *Report, path string) *Comparison {
	c := &Comparison{RunID: old.RunID, Path: path, NewFail: []string{}, NewPass: []string{}, Missing: []string{}, Added: []string{}, PassRate: [2]float64{old.rate(), now.rate()}}
	before, names := map[string]*Scenario{}, map[string]*Scenario{}
	for i := range old.Scenarios {
		s := &old.Scenarios[i]
		before[s.ID+"\x00"+s.Name] = s
		names[s.Name] = s
	}
	matched := map[*Scenario]bool{}
	for i := range now.Scenarios {
		s := &now.Scenarios[i]
		o := before[s.ID+"\x00"+s.Name]
		if o == nil {
			o = names[s.Name]
		}
		if o == nil || matched[o] {
			c.Added = append(c.Added, s.Title())
			if s.Status != Passed && !unjudged(s.Status, s.Errors) {
				c.add(false, fmt.Sprintf("%s: %s, is new", s.Title(), s.Status))
			}
			continue
		}
		matched[o] = true
		c.scenario(o, s)
	}
	for i := range old.Scenarios {
		if s := &old.Scenarios[i]; !matched[s] {
			c.Missing = append(c.Missing, s.Title())
		}
	}
	return c
}

func (r *Report) rate() float64 {
	if r.Total <= 0 {
		return 0
	}
	return float64(min(max(r.Passed, 0), r.Total)) / float64(r.Total)
}

func (c *Comparison) scenario(old, now *Scenario) {
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
	known := !unjudged(old.Status, old.Errors) && !unjudged(now.Status, now.Errors)
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
