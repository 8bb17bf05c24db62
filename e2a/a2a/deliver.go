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
	maxTries           = 6                      // attempts to send one notification
	firstPause         = time.Second            // before the second attempt; each pause is twice the previous one
	maxPendingPerHook  = 32                     // pending notifications of a hook; the oldest are dropped
	maxConcurrentPosts = 16                     // notifications being sent at the same time, for all tasks
	maxRestored        = 100                    // pending notifications taken over from the previous server
	staleAge           = 24 * time.Hour         // a restored notification of an older end is dropped
	defaultCloseGrace  = 500 * time.Millisecond // time for pending notifications when the server closes
)

// hook is a push configuration with its pending notifications. config, legacy and ctx do not
// change.
type hook struct {
	config pushConfig
	legacy bool            // the receiver expects A2A 0.3
	ctx    context.Context // ends when the hook is removed or the server closes
	cancel context.CancelFunc

	// The job's lock guards the fields below.
	pending    []*task
	delivering bool // a goroutine is delivering
}

// queueNotifications queues a notification of the task's current state for each hook. The caller
// holds the job's lock. A notification contains the whole task except its history, so a later one
// replaces a lost one.
func (j *job) queueNotifications() {
	if len(j.hooks) == 0 {
		return
	}
	none := 0
	now := j.snapshotLocked(&none)
	for _, h := range j.hooks {
		if len(h.pending) == maxPendingPerHook {
			h.pending = h.pending[1:]
		}
		h.pending = append(h.pending, now)
		if !h.delivering {
			h.delivering = true
			j.server.work.Go(func() { j.deliver(h) })
		}
	}
}

// deliver sends the pending notifications of a hook one after another.
func (j *job) deliver(h *hook) {
	for {
		t := j.nextNotification(h)
		if t == nil {
			return
		}
		err := j.server.post(h, t)
		postponed := err != nil && (h.ctx.Err() != nil || j.server.ctx.Err() != nil && retryable(err))
		if err != nil && !postponed {
			j.server.opts.Log.Warn("gave up on a push notification", "task", j.id, "host", hostOf(h.config.URL), "state", t.Status.State, "err", err)
		}
		if last := j.removeNotification(h, t, postponed); last {
			return
		}
	}
}

// nextNotification returns the next pending notification of a hook. It returns nil, and marks the
// delivery as finished, if nothing is pending or the hook was removed.
func (j *job) nextNotification(h *hook) *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(h.pending) == 0 || h.ctx.Err() != nil {
		h.delivering = false
		return nil
	}
	return h.pending[0]
}

// removeNotification removes a notification that was delivered, given up, or postponed because the
// server closes. If the last pending one is postponed, it stays queued for the next server; last is
// then true and the delivery ends.
func (j *job) removeNotification(h *hook, t *task, postponed bool) (last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if postponed && len(h.pending) == 1 {
		h.delivering = false
		return true
	}
	if h.pending[0] == t { // otherwise it has been dropped
		h.pending = h.pending[1:]
	}
	if len(h.pending) == 0 && j.task.Status.State.ended() {
		j.save() // the record no longer needs this hook
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

// errStatus is the HTTP status of a receiver that did not accept a notification.
type errStatus int

func (e errStatus) Error() string {
	text := fmt.Sprintf("the receiver answered %d %s", int(e), http.StatusText(int(e)))
	if e >= 300 && e < 400 {
		text += "; redirects are not followed"
	}
	return text
}

// post sends a notification, with retries.
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
		if err == nil || try == maxTries || !retryable(err) || s.ctx.Err() != nil {
			return err
		}
		if err := s.pause(h.ctx, pause); err != nil {
			return err
		}
		pause *= 2
	}
}

// errPushOff means that the user disabled notifications.
var errPushOff = errors.New("push notifications are off")

func (s *Server) postOnce(h *hook, header http.Header, body []byte) error {
	if !s.pushEnabled() {
		return errPushOff
	}
	select {
	case s.postSlots <- struct{}{}:
		defer func() { <-s.postSlots }()
	case <-h.ctx.Done():
		return h.ctx.Err()
	}
	status, err := s.opts.Notifier.PostWebhook(h.ctx, h.config.URL, header, body)
	if err == nil && (status < 200 || status > 299) {
		err = errStatus(status)
	}
	return err
}

// retryable reports whether another attempt to send a notification may succeed.
func retryable(err error) bool {
	var status errStatus
	switch {
	case errors.Is(err, errPushOff):
		return false
	case errors.As(err, &status):
		return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusTooManyRequests
	}
	var refused *netclient.Error
	return !errors.As(err, &refused) || refused.Kind != netclient.KindForbidden
}

// pause waits before another attempt. It returns early with an error when the server closes.
func (s *Server) pause(ctx context.Context, d time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	return s.opts.Sleep(ctx, d)
}
