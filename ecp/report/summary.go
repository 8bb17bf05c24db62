package report

import (
	"strconv"

	"github.com/seed-dec29ce4/eca/ecp/stats"
)

// Summary is the pass rate over the cases of a variant, with its uncertainty. Errors count as not
// passed.
type Summary struct {
	Cases      int     `json:"cases"`
	Attempts   int     `json:"attempts"`
	Passed     int     `json:"passed"` // attempts
	Errors     int     `json:"errors"` // attempts
	PassRate   float64 `json:"pass_rate"`
	GradedRate float64 `json:"graded_pass_rate"` // of attempts that did not end in an error
	// CI95 is the interval of the pass rate: Wilson's for one case, otherwise cluster-robust over
	// scenarios. It is null, with the reason in Note, if there are too few scenarios.
	CI95     *[2]float64        `json:"ci95"`
	Note     string             `json:"ci95_note,omitempty"`
	PassAtK  map[string]float64 `json:"pass_at_k,omitempty"`  // if there were several attempts
	PassAllK map[string]float64 `json:"pass_all_k,omitempty"` // if there were several attempts
	Flaky    int                `json:"flaky"`                // cases where only some attempts passed
	P50MS    float64            `json:"p50_ms"`               // of attempts
	P95MS    float64            `json:"p95_ms"`
}

// Sample is the result of a case with a variant, as input for statistics. A Scenario of the report is
// one case: a scenario of the manifest with a record of its dataset.
type Sample struct {
	Place   int // index in the report
	Case    string
	Aliases []string
	Group   string // id of the scenario in the manifest, the same for all records of its dataset
	Name    string
	Status  string
	N       int // attempts
	Passed  int // attempts
	Errors  int // attempts

	Unjudged bool // a judge or a grader failed, so it is not known whether the agent passed
}

// passRate returns the share of attempts that passed.
func (s Sample) passRate() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.Passed) / float64(s.N)
}

// Sample returns the result as input for statistics. place is its index in the report.
func (s *Scenario) Sample(place int) Sample {
	out := Sample{Place: place, Case: s.ID, Aliases: s.Aliases, Group: s.Group, Name: s.Name, Status: s.Status, Unjudged: onlyJudgmentFailed(s.Status, s.Errors)}
	if out.Group == "" {
		out.Group = s.ID
	}
	for _, a := range s.AllAttempts() {
		out.N++
		switch a.Status {
		case Passed:
			out.Passed++
		case Error:
			out.Errors++
		}
	}
	return out
}

// AllAttempts returns the attempts of a scenario. It builds the attempt from the scenario if there was
// only one.
func (s *Scenario) AllAttempts() []Attempt {
	if len(s.Attempts) > 0 {
		return s.Attempts
	}
	return []Attempt{{
		Status: s.Status, ExitReason: s.ExitReason, DurationMS: s.DurationMS, Steps: s.Steps, Errors: s.Errors, Notes: s.Notes,
		Agent: s.Agent, Workspace: s.Workspace, Diff: s.Diff, DiffFile: s.DiffFile, Cached: s.Cached > 0,
	}}
}

// clusterSamples returns the sums of value over the samples of each Group, in the order of the groups' first
// samples.
func clusterSamples(samples []Sample, value func(Sample) (sum float64, n int)) (out []stats.Cluster) {
	groups := indexes{}
	for _, s := range samples {
		at := groups.indexOf(s.Group)
		if at == len(out) {
			out = append(out, stats.Cluster{})
		}
		sum, n := value(s)
		out[at].Sum += sum
		out[at].N += n
	}
	return out
}

// indexes maps keys to numbers, in the order of their first occurrence.
type indexes map[string]int

func (p indexes) indexOf(key string) int {
	at, ok := p[key]
	if !ok {
		at = len(p)
		p[key] = at
	}
	return at
}

// Statistics estimates the pass rate of a scenario with its 95% confidence interval, and the
// probabilities that at least one, or each, of k attempts passes. It leaves out attempts that could
// not be judged.
func Statistics(attempts []Attempt) (r *Repeat, passAtK map[string]float64) {
	n, c := 0, 0
	for _, a := range attempts {
		if onlyJudgmentFailed(a.Status, a.Errors) {
			continue
		}
		n++
		if a.Status == Passed {
			c++
		}
	}
	r, passAtK = &Repeat{N: n, Passed: c, PassAllK: map[string]float64{}}, map[string]float64{}
	if n == 0 {
		return r, passAtK
	}
	r.PassRate, r.CI95 = float64(c)/float64(n), stats.Wilson(c, n)
	for _, k := range stats.Powers(n) {
		passAtK[strconv.Itoa(k)], _ = stats.PassAtK(n, c, k)
		r.PassAllK[strconv.Itoa(k)], _ = stats.PassAllK(n, c, k)
	}
	return r, passAtK
}
