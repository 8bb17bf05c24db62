package cluster

import (
	"context"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// lead waits until this process leads the run, and keeps the lead until the end of the run is
// known.
func (f *Follower) lead(ctx context.Context, leads chan<- struct{}, finished <-chan bool) {
	msg := f.planMessage(ctx)
	if msg == nil {
		return
	}
	select {
	case leads <- struct{}{}:
	case <-ctx.Done():
	}
	beat := time.NewTicker(max(f.c.lease/3, 50*time.Millisecond))
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if err := msg.InProgress(); err != nil {
				f.c.log.Warn("cluster: keep the lead", "run", f.doc.Run, "err", err)
			}
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.c.lease)
			defer cancel()
			st, err := f.c.State(last, f.doc.Run)
			if <-finished || err == nil && (st.State == StateFinished || st.State == StateCancelled) {
				_ = msg.DoubleAck(last)
			} else {
				_ = msg.Nak() // so that the next leader need not wait
				_ = f.c.nc.FlushWithContext(last)
			}
			return
		}
	}
}

// planMessage waits for the message that makes its holder the leader. It returns nil if ctx ends.
func (f *Follower) planMessage(ctx context.Context) jetstream.Msg {
	for ctx.Err() == nil {
		consumer, err := f.c.js.Consumer(ctx, planStream, "plan-"+f.doc.Run)
		if err == nil {
			var batch jetstream.MessageBatch
			if batch, err = consumer.Fetch(1, jetstream.FetchMaxWait(max(f.c.lease/6, time.Second))); err == nil {
				for msg := range batch.Messages() {
					return msg
				}
				err = batch.Error()
			}
		}
		if err != nil && ctx.Err() == nil {
			pause(ctx, f.c.lease/6)
		}
	}
	return nil
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// collect reads results in their order until ctx ends, and reconnects when necessary.
func (f *Follower) collect(ctx context.Context, to chan<- arrival) {
	seq := uint64(0)
	for ctx.Err() == nil {
		err := f.collectFrom(ctx, &seq, to)
		if ctx.Err() == nil {
			f.c.log.Warn("cluster: read results", "run", f.doc.Run, "err", err)
			pause(ctx, time.Second)
		}
	}
}

func (f *Follower) collectFrom(ctx context.Context, seq *uint64, to chan<- arrival) error {
	consumer, err := f.c.js.OrderedConsumer(ctx, resultStreams+f.doc.Run, jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: *seq + 1})
	if err != nil {
		return err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		msg, err := messages.Next()
		if err != nil {
			messages.Stop()
			return err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Stream <= *seq {
			continue
		}
		key, err := parseKey(msg.Subject())
		if err != nil {
			return err
		}
		a, diff := f.c.attempt(ctx, msg.Data())
		f.keepDiff(ctx, &a, key, diff)
		select {
		case to <- arrival{meta.Sequence.Stream, key, a}:
			*seq = meta.Sequence.Stream
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// keepDiff writes the diff of an attempt into the folder for diffs.
func (f *Follower) keepDiff(ctx context.Context, a *report.Attempt, key attemptKey, blob string) {
	if f.o.Artifacts == "" || blob == "" {
		return
	}
	path := filepath.Join(f.o.Artifacts, key.String()+".diff")
	raw, err := f.c.readBlob(ctx, blob)
	if err == nil {
		err = safeio.Write(path, raw, 0o644)
	}
	if err != nil {
		a.Notes = append(a.Notes, "the diff could not be kept: "+err.Error())
		return
	}
	a.DiffFile = path
}
