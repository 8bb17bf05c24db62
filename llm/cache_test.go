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
		{RetainLong, nil, 100}, // the provider reports nothing, so the requested retention counts
		{RetainLong, n(0), 0},  // what the provider reports takes precedence
		{RetainShort, n(40), 40},
		{RetainLong, n(400), 100},
	} {
		if got := c.retention.LongWrites(100, c.reported); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestMarkBackwards(t *testing.T) {
	var indexes []int
	MarkBackwards(6, 2, func(i int) bool {
		indexes = append(indexes, i)
		return i%2 == 0
	})
	if got := fmt.Sprint(indexes); got != "[5 4 3 2]" {
		t.Error(got)
	}
	MarkBackwards(2, 4, func(i int) bool { return i < 0 }) // ends without a mark
}

// Requests for turns and summaries use the cache. Single requests, such as for titles, do not.
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
