package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// The limits of notifications.
const (
	maxTries          = 6                      // of one notification
	firstPause        = time.Second            // before the second attempt; each pause is twice the previous one
	maxWaiting        = 32                     // notifications of a hook; the oldest ones beyond that are dropped
	maxPosting        = 16                     // notifications being sent at the same time, for all tasks
	maxLate           = 100                    // ends of tasks that the previous server did not deliver
	lateAge           = 24 * time.Hour         // after which no receiver waits for such an end any more
	defaultCloseGrace = 500 * time.Millisecond // for pending notifications when the server closes
)

// hook is a configuration with its pending notifications. config, legacy and ctx do not change.
type hook struct {
	config pushConfig
	legacy bool            // its receiver speaks 0.3
	ctx    context.Context // ends with the hook, or the server
	cancel context.CancelFunc

	// The job's lock guards the fields below.
	waiting []*task
	busy    bool // a goroutine is delivering
}

// tellHooks queues a notification of the task's current state for each hook. The caller holds the
// job's lock. A notification contains the whole task, without the messages to it, so that the next
// one makes up for a lost one.
func (j *job) tellHooks() {
	if len(j.hooks) == 0 {
		return
	}
	none := 0
	now := j.snapshotLocked(&none)
	for _, h := range j.hooks {
		if len(h.waiting) == maxWaiting {
			h.waiting = h.waiting[1:]
		}
		h.waiting = append(h.waiting, now)
		if !h.busy {
			h.busy = true
			j.s.work.Go(func() { j.deliver(h) })
		}
	}
}

// deliver sends the pending notifications of a hook one after another.
func (j *job) deliver(h *hook) {
	for {
		t := j.toTell(h)
		if t == nil {
			return
		}
		err := j.s.post(h, t)
		left := err != nil && (h.ctx.Err() != nil || j.s.ctx.Err() != nil && worthAnother(err))
		if err != nil && !left {
			j.s.log.Warn("a push notification is given up", "task", j.id, "host", hostOf(h.config.URL), "state", t.Status.State, "err", err)
		}
		if last := j.removeNotification(h, t, left); last {
			return
		}
	}
}

// toTell returns the next notification of a hook. Nil ends its delivery.
func (j *job) toTell(h *hook) *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(h.waiting) == 0 || h.ctx.Err() != nil {
		h.busy = false
		return nil
	}
	return h.waiting[0]
}

// removeNotification removes a notification that was delivered, given up, or left because the server
// closes. If the last pending one is left, it stays for the next server, and the delivery ends.
func (j *job) removeNotification(h *hook, t *task, left bool) (last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if left && len(h.waiting) == 1 {
		h.busy = false
		return true
	}
	if h.waiting[0] == t { // otherwise it has been dropped
		h.waiting = h.waiting[1:]
	}
	if len(h.waiting) == 0 && j.task.Status.State.ended() {
		j.save() // without the hooks that have been notified
	}
	return false
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// errStatus is the status of a receiver that did not accept a notification.
type errStatus int

func (e errStatus) Error() string {
	text := fmt.Sprintf("the receiver answered %d %s", int(e), http.StatusText(int(e)))
	if e >= 300 && e < 400 {
		text += "; redirects are not followed"
	}
	return text
}

// post sends a notification, repeatedly if necessary.
func (s *Server) post(h *hook, t *task) error {
	var body []byte
	var err error
	if h.legacy {
		body, err = json.Marshal(legacyTask(t))
	} else {
		body, err = json.Marshal(event{Task: t})
	}
	if err != nil {
		return err
	}
	header := h.header()
	pause := firstPause
	for try := 1; ; try++ {
		err := s.postOnce(h, header, body)
		if err == nil || try == maxTries || !worthAnother(err) || s.ctx.Err() != nil {
			return err
		}
		if err := s.pause(h.ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// errOff means that the user disabled notifications.
var errOff = errors.New("push notifications are off")

func (s *Server) postOnce(h *hook, header http.Header, body []byte) error {
	if !s.pushes() {
		return errOff
	}
	select {
	case s.posts <- struct{}{}:
		defer func() { <-s.posts }()
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
	status, err := s.notifier.PostWebhook(h.ctx, h.config.URL, header, body)
	if err == nil && (status < 200 || status > 299) {
		err = errStatus(status)
	}
	return err
}

// worthAnother reports whether a receiver may accept later what it does not accept now.
func worthAnother(err error) bool {
	var status errStatus
	switch {
	case errors.Is(err, errOff):
		return false
	case errors.As(err, &status):
		return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	}
	var refused *netclient.Error
	return !errors.As(err, &refused) || refused.Kind != netclient.KindForbidden
}

// pause waits before another attempt, but not longer than the server runs.
func (s *Server) pause(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return s.sleep(ctx, d)
}
