package service

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

const heartbeat = 15 * time.Second

// events answers GET /v1/jobs/{id}/events: it sends all events, or those after Last-Event-ID, and
// then new events until the last one.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	id, err := jobID(r)
	if err == nil {
		_, err = h.s.job(r.Context(), id)
	}
	after := int64(-1)
	if last := strings.TrimSpace(r.Header.Get("Last-Event-ID")); err == nil && last != "" {
		if after, err = strconv.ParseInt(last, 10, 64); err != nil || after < 0 {
			err = &Failure{Code: esrp.InvalidInputSemantic, Message: "Last-Event-ID is not a valid event id"}
		}
	}
	if err != nil {
		h.fail(w, esrp.UUID{}, err)
		return
	}
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	out := sse.NewWriter(w)
	for out.Flush() == nil {
		news, leave := h.s.hub.subscribe(id)
		list, err := h.s.events(r.Context(), id, after)
		if err != nil {
			leave()
			return // the reader connects again
		}
		for _, e := range list {
			after = e.seq
			if out.Event(strconv.FormatInt(e.seq, 10), string(e.kind), e.body) != nil || e.final() {
				leave()
				_ = out.Flush()
				return
			}
		}
		if len(list) > 0 {
			leave()
			continue
		}
		if over, err := h.over(r, id, after); over || err != nil {
			leave()
			return
		}
		select {
		case <-news:
		case <-tick.C:
			_ = out.Comment("alive")
		case <-r.Context().Done():
		case <-h.s.leaving.Done():
		}
		leave()
		if r.Context().Err() != nil || h.s.leaving.Err() != nil {
			return
		}
	}
}

// over reports whether no event can follow: the reader already has the last one.
func (h *handler) over(r *http.Request, id string, after int64) (bool, error) {
	j, err := h.s.job(r.Context(), id)
	if errors.Is(err, errNoJob) || err == nil && !j.state.Final() {
		return err != nil, err
	}
	if err != nil {
		return false, err
	}
	left, err := h.s.events(r.Context(), id, after)
	return len(left) == 0, err
}
