package report

import (
	"fmt"
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

// Sample is the result of a case with a variant, as input for statistics.
type Sample struct {
	Place   int // index among all results of the run
	Case    string
	Aliases []string
	Group   string // id of the scenario, which its records share
	Name    string
	Status  string
	N       int // attempts
	Passed  int // attempts
	Errors  int // attempts

	Unjudged bool // only the judgment is missing
}

// rate returns the share of attempts that passed.
func (s Sample) rate() float64 {
	if s.N == 0 {
		return 0
	}
	return float64(s.Passed) / float64(s.N)
}

// Sample returns the result as input for statistics. place is the scenario's index in the report.
func (s *Scenario) Sample(place int) Sample {
	out := Sample{Place: place, Case: s.ID, Aliases: s.Aliases, Group: s.Group, Name: s.Name, Status: s.Status, Unjudged: unjudged(s.Status, s.Errors)}
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

// summarize returns the summary of the scenarios of one variant.
func summarize(scenarios []*Scenario) Summary {
	out := Summary{Cases: len(scenarios)}
	samples := make([]Sample, len(scenarios))
	var took []float64
	for i, s := range scenarios {
		samples[i] = s.Sample(i)
		out.Attempts += samples[i].N
		out.Passed += samples[i].Passed
		out.Errors += samples[i].Errors
		if samples[i].Passed > 0 && samples[i].Passed < samples[i].N {
			out.Flaky++
		}
		for _, a := range s.AllAttempts() {
			if !a.Cached {
				took = append(took, float64(a.DurationMS))
			}
		}
	}
	out.P50MS, out.P95MS = stats.Percentile(took, 0.5), stats.Percentile(took, 0.95)
	if out.Attempts == 0 {
		return out
	}
	out.PassRate = float64(out.Passed) / float64(out.Attempts)
	if graded := out.Attempts - out.Errors; graded > 0 {
		out.GradedRate = float64(out.Passed) / float64(graded)
	}
	out.CI95, out.Note = interval(samples, out)
	out.passK(samples)
	return out
}

// interval returns the interval of the pass rate, or why it is unknown.
func interval(samples []Sample, sum Summary) (*[2]float64, string) {
	if len(samples) == 1 {
		ci := stats.Wilson(sum.Passed, sum.Attempts)
		return &ci, ""
	}
	clusters := clusters(samples, func(s Sample) (float64, int) { return float64(s.Passed), s.N })
	if len(clusters) < stats.MinClusters {
		return nil, fmt.Sprintf("no interval: there are %d scenarios, but at least %d are needed to estimate their spread", len(clusters), stats.MinClusters)
	}
	ci, _ := stats.ClusterInterval(clusters)
	if ci[0] == ci[1] { // all scenarios have the same result, so their spread is unknown
		ci = stats.Wilson(int(ci[0]*float64(len(clusters))), len(clusters))
	}
	return &ci, ""
}

// clusters groups samples, in the order of the groups' first samples.
func clusters(samples []Sample, value func(Sample) (sum float64, n int)) (out []stats.Cluster) {
	groups := places{}
	for _, s := range samples {
		at := groups.of(s.Group)
		if at == len(out) {
			out = append(out, stats.Cluster{})
		}
		sum, n := value(s)
		out[at].Sum += sum
		out[at].N += n
	}
	return out
}

// places numbers keys in the order of their first occurrence.
type places map[string]int

func (p places) of(key string) int {
	at, ok := p[key]
	if !ok {
		at = len(p)
		p[key] = at
	}
	return at
}

// passK averages pass@k and pass^k over the cases with at least k attempts.
func (out *Summary) passK(samples []Sample) {
	most := 0
	for _, s := range samples {
		most = max(most, s.N)
	}
	if most < 2 {
		return
	}
	out.PassAtK, out.PassAllK = map[string]float64{}, map[string]float64{}
	for _, k := range stats.Powers(most) {
		var any, all stats.Cluster
		for _, s := range samples {
			if p, ok := stats.PassAtK(s.N, s.Passed, k); ok {
				q, _ := stats.PassAllK(s.N, s.Passed, k)
				any.Sum, any.N = any.Sum+p, any.N+1
				all.Sum, all.N = all.Sum+q, all.N+1
			}
		}
		out.PassAtK[strconv.Itoa(k)], out.PassAllK[strconv.Itoa(k)] = stats.Mean([]stats.Cluster{any}), stats.Mean([]stats.Cluster{all})
	}
}

// Statistics estimates the pass rate of a scenario with its 95% confidence interval, and the
// probabilities that at least one, or each, of k attempts passes. It leaves out attempts that could
// not be judged.
func Statistics(attempts []Attempt) (*Repeat, map[string]float64) {
	n, c := 0, 0
	for _, a := range attempts {
		if unjudged(a.Status, a.Errors) {
			continue
		}
		n++
		if a.Status == Passed {
			c++
		}
	}
	r := &Repeat{N: n, Passed: c, PassAllK: map[string]float64{}}
	any := map[string]float64{}
	if n == 0 {
		return r, any
	}
	r.PassRate, r.CI95 = float64(c)/float64(n), stats.Wilson(c, n)
	for _, k := range stats.Powers(n) {
		any[strconv.Itoa(k)], _ = stats.PassAtK(n, c, k)
		r.PassAllK[strconv.Itoa(k)], _ = stats.PassAllK(n, c, k)
	}
	return r, any
}
