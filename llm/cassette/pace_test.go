package cassette

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A consumer that is slow for a while gets the deltas that it missed without a delay, and an end of the
// context is noticed.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began, wait := time.Now(), pace(&Step{Delay: time.Millisecond})
		next := func() time.Duration {
			if err := wait(ctx); err != nil {
				t.Fatal(err)
			}
			return time.Since(began)
		}
		if got := next(); got != time.Millisecond {
			t.Errorf("the first delta is due after %s", got)
		}
		time.Sleep(9 * time.Millisecond)
		for range 9 {
			if got := next(); got > 11*time.Millisecond {
				t.Errorf("a late delta is due after %s", got)
			}
		}
		for range 90 {
			next()
		}
		if got := next(); got != 101*time.Millisecond {
			t.Errorf("the 101st delta is due after %s", got)
		}
		cancel()
		if wait(ctx) == nil {
			t.Error("it waits although nobody wants the delta")
		}
	})
}
