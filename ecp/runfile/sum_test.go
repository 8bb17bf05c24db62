package runfile

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Encoded sums have all fields that have no column, and damaged ones are an error.
func TestSums(t *testing.T) {
	cost := 0.25
	want := report.Sums{
		Sample:     report.Sample{Group: "g", Status: report.Failed, N: 7, Passed: 3, Errors: 2, Unjudged: true},
		DurationMS: 1234, ExitReason: report.ReasonDuration, Checks: 9, PassedChecks: 8, CostUSD: &cost, TookMS: []int64{5, 0, 1 << 40}, Cached: 4,
		Usage: report.Tokens{InputTokens: 1, OutputTokens: 2, CacheReadTokens: 3, CacheWriteTokens: 4, ReasoningTokens: 1 << 50},
	}
	for _, part := range []any{want, want.Usage} {
		for i, v := 0, reflect.ValueOf(part); i < v.NumField(); i++ {
			if v.Field(i).IsZero() {
				t.Errorf("the test has no %s", v.Type().Field(i).Name)
			}
		}
	}
	raw, decoder := encodeSums(want), sumsDecoder{}
	got := report.Sums{TookMS: []int64{1, 2, 3, 4, 5}}
	if err := decoder.decode(raw, &got); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	if err := decoder.decode(encodeSums(report.Sums{}), &got); err != nil || !cmp.Equal(got, report.Sums{TookMS: []int64{}}) {
		t.Errorf("%v: %+v", err, got)
	}
	for _, damaged := range [][]byte{nil, raw[:3], raw[:len(raw)-1], {0, 0, 200}} {
		if err := decoder.decode(damaged, &got); !errors.Is(err, errDamagedSums) {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}
