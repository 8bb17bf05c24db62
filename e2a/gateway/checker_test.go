package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/e2a"
)

// checker finds violations of the invariants in a sequence of frames, for any number of requests.
// The zero value is ready for use.
type checker struct {
	next  map[string]int64 // by request
	ended map[string]bool
	ids   map[string]bool
}

// check checks the next frame.
func (c *checker) check(r e2a.Response) error {
	if c.next == nil {
		c.next, c.ended, c.ids = map[string]int64{}, map[string]bool{}, map[string]bool{}
	}
	request := ""
	if r.RequestID != nil {
		request = *r.RequestID
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("frame %d of request %q: %s", r.Sequence, request, fmt.Sprintf(format, args...))
	}
	switch {
	case r.ProtocolVersion != e2a.ProtocolVersion:
		return fail("protocol_version is %q", r.ProtocolVersion)
	case request == "":
		return fail("request_id is missing")
	case r.ResponseID == "":
		return fail("response_id is missing")
	case c.ids[r.ResponseID]:
		return fail("response_id %s was there before", r.ResponseID)
	case c.ended[request]:
		return fail("it follows the final one")
	case r.Sequence != c.next[request]:
		return fail("the next one is %d", c.next[request])
	case r.Timestamp == nil:
		return fail("timestamp is missing")
	case r.Status == e2a.Failed && r.Kind != e2a.KindError && r.Kind != e2a.KindACPError:
		return fail("it failed, but is a %s", r.Kind)
	case r.IsFinal && r.Status == e2a.InProgress:
		return fail("it is final, but in progress")
	case !slices.Contains(e2a.ResponseKinds(), r.Kind):
		return fail("response_kind %q is unknown", r.Kind)
	}
	if _, err := time.Parse(time.RFC3339Nano, *r.Timestamp); err != nil {
		return fail("timestamp %q is not an RFC 3339 time", *r.Timestamp)
	}
	c.next[request]++
	c.ended[request] = r.IsFinal
	c.ids[r.ResponseID] = true
	return nil
}

// open lists the requests whose final frame is missing.
func (c *checker) open() []string {
	var open []string
	for request := range c.next {
		if !c.ended[request] {
			open = append(open, request)
		}
	}
	return open
}

// TestChecker violates each invariant.
func TestChecker(t *testing.T) {
	id, at := "r", "2026-03-28T12:00:00Z"
	good := e2a.Response{ProtocolVersion: e2a.ProtocolVersion, ResponseID: "a", RequestID: &id, Status: e2a.InProgress, Kind: e2a.KindChunk, Timestamp: &at}
	var c checker
	if err := c.check(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*e2a.Response){
		"version":     func(r *e2a.Response) { r.ProtocolVersion = "2.0" },
		"no request":  func(r *e2a.Response) { r.RequestID = nil },
		"no id":       func(r *e2a.Response) { r.ResponseID = "" },
		"same id":     func(r *e2a.Response) { r.ResponseID = "a" },
		"gap":         func(r *e2a.Response) { r.Sequence = 2 },
		"again":       func(r *e2a.Response) { r.Sequence = 0 },
		"no time":     func(r *e2a.Response) { r.Timestamp = nil },
		"bad time":    func(r *e2a.Response) { bad := "noon"; r.Timestamp = &bad },
		"failed kind": func(r *e2a.Response) { r.Status, r.IsFinal = e2a.Failed, true },
		"final":       func(r *e2a.Response) { r.IsFinal = true },
		"kind":        func(r *e2a.Response) { r.Kind = "e2a.other" },
	} {
		r := good
		r.ResponseID, r.Sequence = "b", 1
		change(&r)
		if err := c.check(r); err == nil {
			t.Errorf("%s was not found", name)
		}
	}
	if open := c.open(); len(open) != 1 || open[0] != "r" {
		t.Errorf("open: %v", open)
	}
	last := good
	last.ResponseID, last.Sequence, last.IsFinal, last.Status, last.Kind = "b", 1, true, e2a.Succeeded, e2a.KindComplete
	if err := c.check(last); err != nil {
		t.Error(err)
	}
	last.ResponseID, last.Sequence = "c", 2
	if err := c.check(last); err == nil {
		t.Error("a frame behind the final one was not found")
	}
}
