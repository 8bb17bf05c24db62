package report

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/seed-dec29ce4/eca/ecp/stats"
)

// Pair is the comparison of two variants, or runs, on their common cases.
type Pair struct {
	A          string      `json:"a"` // names of the variants, or runs
	B          string      `json:"b"`
	Cases      int         `json:"cases"`
	OnlyA      int         `json:"only_a"`     // cases that only A passed, in every attempt
	OnlyB      int         `json:"only_b"`     // cases that only B passed, in every attempt
	Difference float64     `json:"difference"` // of the pass rates, averaged over cases: B minus A
	CI95       *[2]float64 `json:"ci95"`       // of the difference; null with too few scenarios
	// P is the probability of a difference this large by chance: McNemar's exact test if each case
	// had one attempt, otherwise a bootstrap over scenarios. PHolm is P with Holm's correction for
	// multiple comparisons.
	P        float64  `json:"p"`
	PHolm    float64  `json:"p_holm"`
	Test     string   `json:"test"`
	Unpaired int      `json:"unpaired"` // cases that only one side has, or that could not be judged
	Changed  []Change `json:"changed"`  // cases with different verdicts
}

// Change is a case whose result differs.
type Change struct {
	Name   string `json:"name"`
	Case   string `json:"id"`
	PlaceA int    `json:"place_a"` // index among the results of A's run
	PlaceB int    `json:"place_b"`
	A      string `json:"a"` // verdict
	B      string `json:"b"`
}

// Tests of a Pair.
const (
	TestMcNemar   = "mcnemar"
	TestBootstrap = "bootstrap"
)

// maxChanged limits how many changed cases a comparison lists.
const maxChanged = 1000

// Compared is one side of a comparison.
type Compared struct {
	Name    string // for human readers
	Run     string // id of the run, part of the seed of the bootstrap
	Key     string // of the variant
	Samples []Sample
}

// NewPair compares two sides.
func NewPair(a, b Compared) Pair {
	p := Pair{A: a.Name, B: b.Name, Test: TestMcNemar, P: 1, PHolm: 1, Changed: []Change{}}
	known := make(map[string]Sample, len(a.Samples))
	for _, s := range a.Samples {
		known[s.Case] = s
	}
	var differences []Sample
	values := map[string]float64{}
	onlyB, onlyA := 0, 0
	for _, now := range b.Samples {
		was, ok := takeSample(known, now)
		if !ok || was.Unjudged || now.Unjudged {
			p.Unpaired++
			continue
		}
		p.Cases++
		if was.N != 1 || now.N != 1 {
			p.Test = TestBootstrap
		}
		passedA, passedB := was.N > 0 && was.Passed == was.N, now.N > 0 && now.Passed == now.N
		switch {
		case passedA && !passedB:
			onlyA++
		case passedB && !passedA:
			onlyB++
		}
		if was.Status != now.Status && len(p.Changed) < maxChanged {
			p.Changed = append(p.Changed, Change{now.Name, now.Case, was.Place, now.Place, was.Status, now.Status})
		}
		differences = append(differences, now)
		values[now.Case] = now.passRate() - was.passRate()
	}
	p.Unpaired += len(known)
	p.OnlyA, p.OnlyB = onlyA, onlyB
	if p.Cases == 0 {
		return p
	}
	groups := clusterSamples(differences, func(s Sample) (float64, int) { return values[s.Case], 1 })
	p.Difference = stats.Mean(groups)
	ci, bootstrapP, ok := stats.Bootstrap(groups, seed(a, b))
	if ok {
		p.CI95 = &ci
	}
	if p.P = bootstrapP; p.Test == TestMcNemar {
		p.P = stats.McNemar(onlyB, onlyA)
	}
	p.PHolm = p.P
	return p
}

// takeSample removes and returns the sample with the id of now's case, or with one of its earlier ids.
func takeSample(known map[string]Sample, now Sample) (Sample, bool) {
	for _, id := range append([]string{now.Case}, now.Aliases...) {
		if was, ok := known[id]; ok {
			delete(known, id)
			return was, true
		}
	}
	return Sample{}, false
}

// seed returns the seed of the bootstrap, which is the same whenever the comparison is repeated.
func seed(a, b Compared) [2]uint64 {
	sum := sha256.Sum256([]byte(a.Run + "\x00" + a.Key + "\x00" + b.Run + "\x00" + b.Key))
	return [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// significantP is the value of PHolm below which a difference is significant.
const significantP = 0.05

// Sentence describes the result of a comparison in one sentence.
func (p *Pair) Sentence() string {
	if p.Cases == 0 {
		return fmt.Sprintf("%s and %s have no task in common", p.B, p.A)
	}
	n := p.Difference * float64(p.Cases)
	text := fmt.Sprintf("%s solves %s of %d tasks than %s", p.B, moreOrFewer(n), p.Cases, p.A)
	if n == 0 {
		text = fmt.Sprintf("%s solves as many of %d tasks as %s", p.B, p.Cases, p.A)
	}
	if p.CI95 == nil {
		return text + "; there are too few tasks for an interval"
	}
	low, high := p.CI95[0]*float64(p.Cases), p.CI95[1]*float64(p.Cases)
	switch {
	case low >= 0 && n > 0:
		text += fmt.Sprintf(", 95%% interval %s to %s", number(low), number(high))
	case high <= 0 && n < 0:
		text += fmt.Sprintf(", 95%% interval %s to %s", number(-high), number(-low))
	default:
		text += fmt.Sprintf(", 95%% interval %s to %s", moreOrFewer(low), moreOrFewer(high))
	}
	if p.PHolm >= significantP {
		text += "; chance alone can explain that"
	}
	return text
}

// Worse reports whether B is significantly worse than A. With too few scenarios for a test, B is
// worse if it lost more cases than it gained.
func (p *Pair) Worse() bool {
	if p.CI95 == nil {
		return p.OnlyA > p.OnlyB
	}
	return p.Difference < 0 && p.PHolm < significantP
}

func moreOrFewer(n float64) string {
	switch {
	case number(math.Abs(n)) == "0":
		return "0"
	case n < 0:
		return number(-n) + " fewer"
	}
	return number(n) + " more"
}

// number formats a count of tasks, which is fractional if attempts were repeated.
func number(n float64) string {
	return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64)
}

// compareVariants compares each variant with the first one.
func compareVariants(sides []Compared) (out []Pair) {
	for i := 1; i < len(sides); i++ {
		out = append(out, NewPair(sides[0], sides[i]))
	}
	setHolm(out)
	return out
}

// setHolm sets PHolm of several comparisons.
func setHolm(pairs []Pair) {
	p := make([]float64, len(pairs))
	for i := range pairs {
		p[i] = pairs[i].P
	}
	for i, corrected := range stats.Holm(p) {
		pairs[i].PHolm = corrected
	}
}

// Sides returns the variants of a report for comparison, in the order of their first scenarios.
func (r *Report) Sides() (out []Compared) {
	sides := indexes{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		at := sides.indexOf(s.VariantName() + "\x00" + s.VariantKey)
		if at == len(out) {
			out = append(out, Compared{Name: s.VariantName(), Run: r.RunID, Key: s.VariantKey})
		}
		out[at].Samples = append(out[at].Samples, s.Sample(i))
	}
	return out
}

// Sentences describes the results of the report's comparisons, one sentence each.
func (r *Report) Sentences() (out []string) {
	pairs := r.Comparisons
	if r.Baseline != nil {
		pairs = slices.Concat(pairs, r.Baseline.Pairs)
	}
	for i := range pairs {
		out = append(out, pairs[i].Sentence())
	}
	return out
}
