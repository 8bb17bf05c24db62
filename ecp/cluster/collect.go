package cluster

import (
	"context"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// lead waits until this process becomes the leader of the run, signals leading, and keeps the lead
// until ctx ends. If the run is over then, lead acknowledges the run's message; otherwise it returns the
// message, so that another process can lead. It receives from complete, once, whether every attempt has
// a result; Schedule sends that before ctx ends.
func (f *Follower) lead(ctx context.Context, leading chan<- struct{}, complete <-chan bool) {
	msg := f.planMessage(ctx)
	if msg == nil {
		return
	}
	select {
	case leading <- struct{}{}:
	case <-ctx.Done():
	}
	stop := msg.KeepAlive(nil)
	<-ctx.Done()
	stop()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.c.lease)
	defer cancel()
	// The run is over if every attempt has a result, or if a process has ended the run.
	allResults := <-complete
	st, err := f.c.State(last, f.doc.Run)
	if allResults || err == nil && (st.State == StateFinished || st.State == StateCancelled) {
		_ = msg.Acknowledge(last)
		return
	}
	_ = msg.Return(0) // so that the next leader need not wait
	_ = f.c.conn.Flush(last)
}

// planMessage waits for the run's message in planStream; the process that receives it is the leader. It
// returns nil if ctx ends.
func (f *Follower) planMessage(ctx context.Context) *jet.Delivery {
	for ctx.Err() == nil {
		consumer, err := f.c.conn.Consumer(ctx, planStream, "plan-"+f.doc.Run)
		if err == nil {
			var msg *jet.Delivery
			if msg, err = consumer.FetchUntil(ctx, max(f.c.lease/6, time.Second)); msg != nil {
				return msg
			}
		}
		if err != nil && ctx.Err() == nil {
			jet.Pause(ctx, f.c.lease/6)
		}
	}
	return nil
}

// collect reads the results of the run, in order, until ctx ends.
func (f *Follower) collect(ctx context.Context, to chan<- receivedResult) {
	err := f.c.conn.Follow(ctx, resultStreams+f.doc.Run, jet.FollowOptions{}, func(m jet.Message) error {
		key, err := parseKey(m.Subject)
		if err != nil {
			f.c.log.Warn("cluster: a result cannot be read", "run", f.doc.Run, "err", err)
			return nil
		}
		a, diffBlob := f.c.decodeAttempt(ctx, m.Data)
		f.keepDiff(ctx, &a, key, diffBlob)
		select {
		case to <- receivedResult{m.Seq, key, a}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil && ctx.Err() == nil {
		f.fail(err)
	}
}

// keepDiff writes the diff of an attempt to FollowOptions.Artifacts, and records its path, or the error,
// in the attempt. The diff is in a blob; its name is empty if there is no diff.
func (f *Follower) keepDiff(ctx context.Context, a *report.Attempt, key attemptKey, blob string) {
	if f.opts.Artifacts == "" || blob == "" {
		return
	}
	path := filepath.Join(f.opts.Artifacts, key.String()+".diff")
	raw, err := f.c.readBlob(ctx, blob)
	if err == nil {
		err = safeio.Write(path, raw, 0o644)
	}
	if err != nil {
		a.Notes = append(a.Notes, "cannot save the diff: "+err.Error())
		return
	}
	a.DiffFile = path
}
