package service

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

const heartbeat = 15 * time.Second

// events answers GET /v1/jobs/{id}/events: it sends all events, or those after Last-Event-ID, and
// then new events until the last one. The id of an event is its sequence number in the stream of all
// jobs.
func (h *handler) events(w http.ResponseWriter, r *http.Request) (none esrp.UUID, err error) {
	id, err := jobID(r)
	if err == nil {
		_, err = h.s.job(r.Context(), id)
	}
	after := uint64(0)
	if last := strings.TrimSpace(r.Header.Get("Last-Event-ID")); err == nil && last != "" {
		if after, err = strconv.ParseUint(last, 10, 63); err != nil {
			err = &Failure{Code: esrp.InvalidInputSemantic, Message: "Last-Event-ID is not a valid event id"}
		}
	}
	if err != nil {
		return none, err
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	out := sse.NewWriter(w)
	for out.Flush() == nil {
		changed, unsubscribe := h.s.hub.subscribe(id)
		ended, err := h.send(r.Context(), out, id, &after)
		if ended || err != nil { // after an error, the client connects again
			unsubscribe()
			_ = out.Flush()
			break
		}
		_ = out.Flush()
		select {
		case <-changed:
		case <-tick.C:
			_ = out.Comment("alive")
		case <-r.Context().Done():
		case <-h.s.draining.Done():
		}
		unsubscribe()
		if r.Context().Err() != nil || h.s.draining.Err() != nil {
			break
		}
	}
	return none, nil
}

// send sends the existing events after a sequence number, which it advances. It reports whether the
// last event of the job was sent.
func (h *handler) send(ctx context.Context, out sse.Writer, id string, after *uint64) (ended bool, err error) {
	for {
		e, err := h.s.next(ctx, id, *after)
		if errors.Is(err, jet.ErrNotFound) {
			last, err := h.s.job(ctx, id)
			return last.final() && last.seq <= *after, err
		}
		if err != nil {
			return false, err
		}
		kind, body, err := e.clientEvent()
		if err == nil {
			err = out.Event(strconv.FormatUint(e.seq, 10), string(kind), body)
		}
		if err != nil || e.final() {
			return true, err
		}
		*after = e.seq
	}
}
