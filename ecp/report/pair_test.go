package report

import (
	"fmt"
	"math"
	"testing"
)

// tasks are samples with one attempt each; + in the string means passed, - failed.
func tasks(verdicts string) (out []Sample) {
	for i, c := range verdicts {
		s := Sample{Place: i, Case: fmt.Sprint(i), Group: fmt.Sprint(i), Name: fmt.Sprint("task ", i), Status: Failed, N: 1}
		if c == '+' {
			s.Status, s.Passed = Passed, 1
		}
		out = append(out, s)
	}
	return out
}

// Comparisons are paired by case, count the cases that only one solved, and are described in a
// sentence.
func TestPair(t *testing.T) {
	a, b := tasks("++++----------"), tasks("+++-++++++++--")
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 { // the order does not matter
		b[i], b[j] = b[j], b[i]
	}
	b = append(b, Sample{Case: "new", Group: "new", N: 1}, Sample{Case: "unjudged", Group: "unjudged", N: 1, Unjudged: true})
	a = append(a, Sample{Case: "old", Group: "old", N: 1}, Sample{Case: "unjudged", Group: "unjudged", N: 1})
	p := NewPair(Compared{Name: "A", Samples: a}, Compared{Name: "B", Samples: b})
	if p.Cases != 14 || p.OnlyA != 1 || p.OnlyB != 8 || p.Unpaired != 3 || len(p.Changed) != 9 || p.Test != TestMcNemar {
		t.Fatalf("%+v", p)
	}
	if want := 2 * (1 + 9) / 512.0; math.Abs(p.P-want) > 1e-12 || math.Abs(p.Difference-0.5) > 1e-12 {
		t.Errorf("p %v, difference %v", p.P, p.Difference)
	}
	again := NewPair(Compared{Name: "A", Samples: a}, Compared{Name: "B", Samples: b})
	if *again.CI95 != *p.CI95 {
		t.Error("the interval is another one the second time")
	}
	p.CI95 = &[2]float64{2.0 / 14, 11.0 / 14}
	if got, want := p.Sentence(), "B solves 7 more of 14 tasks than A, 95% interval 2 to 11"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSentence(t *testing.T) {
	ci := func(low, high float64) *[2]float64 { return &[2]float64{low, high} }
	for want, p := range map[string]Pair{
		"B and A have no task in common":                                                                        {},
		"B solves 6 more of 120 tasks than A, 95% interval 1 to 11":                                             {Cases: 120, Difference: 0.05, CI95: ci(1.0/120, 11.0/120)},
		"B solves 6 fewer of 120 tasks than A, 95% interval 1 to 11":                                            {Cases: 120, Difference: -0.05, CI95: ci(-11.0/120, -1.0/120)},
		"B solves as many of 20 tasks as A, 95% interval 2 fewer to 2 more; chance alone can explain that":      {Cases: 20, CI95: ci(-0.1, 0.1), PHolm: 1},
		"B solves 1.5 more of 20 tasks than A, 95% interval 0.5 fewer to 3 more; chance alone can explain that": {Cases: 20, Difference: 0.075, CI95: ci(-0.025, 0.15), PHolm: 0.2},
		"B solves 1 more of 3 tasks than A; there are too few tasks for an interval":                            {Cases: 3, Difference: 1.0 / 3, PHolm: 1},
	} {
		p.A, p.B = "A", "B"
		if got := p.Sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// With repeated attempts, a case counts as its share of passed attempts, and the records of one
// scenario are grouped.
func TestSummary(t *testing.T) {
	var r Report
	for i := range 12 {
		s := Scenario{ID: fmt.Sprint(i), Group: fmt.Sprint(i / 2), Status: Passed, Variant: map[string]string{"v": "a"}}
		for n := range 4 {
			status := Passed
			if n < i%4 {
				status, s.Status = Failed, Failed
			}
			s.Attempts = append(s.Attempts, Attempt{Status: status, DurationMS: int64(10*i + n)})
		}
		r.Scenarios = append(r.Scenarios, s)
		s.Variant = map[string]string{"v": "b"}
		s.Attempts = s.Attempts[:1]
		r.Scenarios = append(r.Scenarios, s)
	}
	r.Sum()
	sum := r.Variants[0].Summary
	if sum.Cases != 12 || sum.Attempts != 48 || sum.Passed != 30 || sum.Flaky != 9 || sum.PassAtK["4"] != 1 || math.Abs(sum.PassAllK["4"]-0.25) > 1e-12 || sum.P95MS != 111 {
		t.Errorf("%+v", sum)
	}
	// Six scenarios of eight attempts, 7 or 3 of which passed: SE² = 6/5 · 6·4 / 48², t(5) =
	// 2.5706.
	if half := 2.5705818366147395 * math.Sqrt(1.2*24) / 48; sum.CI95 == nil || math.Abs(sum.CI95[0]-(0.625-half)) > 1e-9 {
		t.Errorf("%v", sum.CI95)
	}
	if len(r.Comparisons) != 1 || r.Comparisons[0].Test != TestBootstrap || r.Comparisons[0].Cases != 12 {
		t.Errorf("%+v", r.Comparisons)
	}
}
