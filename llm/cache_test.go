package llm

import (
	"context"
	"fmt"
	"iter"
	"testing"
)

func TestLongWrites(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		retention Retention
		reported  *int64
		want      int64
	}{
		{"", nil, 0},
		{RetainShort, nil, 0},
		{RetainLong, nil, 100}, // not stated: what was asked for
		{RetainLong, n(0), 0},  // the provider knows better
		{RetainShort, n(40), 40},
		{RetainLong, n(400), 100},
	} {
		if got := c.retention.LongWrites(100, c.reported); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestMarkBackwards(t *testing.T) {
	var at []int
	MarkBackwards(6, 2, func(i int) bool {
		at = append(at, i)
		return i%2 == 0
	})
	if got := fmt.Sprint(at); got != "[5 4 3 2]" {
		t.Error(got)
	}
	MarkBackwards(2, 4, func(i int) bool { return i < 0 }) // ends without a mark
}

// A single request is not worth a cache; everything else is.
func TestCached(t *testing.T) {
	for p, want := range map[Purpose]bool{PurposeTurn: true, PurposeCompact: true, "": true, PurposeTitle: false, PurposeRewrite: false, PurposeCompletion: false} {
		if got := (Request{Purpose: p}).Cached(); got != want {
			t.Errorf("%q: %v", p, got)
		}
	}
}

type asked struct{ req Request }

func (s *asked) Stream(_ context.Context, req Request) iter.Seq2[Delta, error] {
	s.req = req
	return func(func(Delta, error) bool) {}
}

func TestWithRetention(t *testing.T) {
	var s asked
	for range WithRetention(&s, RetainLong).Stream(t.Context(), Request{Model: "m"}) {
	}
	if s.req.Retention != RetainLong || s.req.Model != "m" {
		t.Errorf("%+v", s.req)
	}
	if WithRetention(&s, "") != Model(&s) {
		t.Error("a model without retention is wrapped")
	}
}
