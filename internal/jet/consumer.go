package jet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerSpec describes a consumer, which delivers each message to one worker. A message is
// delivered again if its worker neither acknowledges it nor extends its lease for the duration
// Lease.
type ConsumerSpec struct {
	Name, Subject string
	Lease         time.Duration
	MaxInFlight   int // unacknowledged messages; 0 means any number
}

// EnsureConsumer creates a consumer of a stream, or updates it to spec. An existing one continues after
// the messages that it has delivered.
func (c *Conn) EnsureConsumer(ctx context.Context, stream string, spec ConsumerSpec) error {
	cfg := spec.config()
	old, err := c.js.Consumer(ctx, stream, spec.Name)
	if err == nil { // servers refuse a change of where it began, such as that of RestartConsumer
		was := old.CachedInfo().Config
		cfg.DeliverPolicy, cfg.OptStartSeq = was.DeliverPolicy, was.OptStartSeq
	}
	if err == nil || errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = c.js.CreateOrUpdateConsumer(ctx, stream, cfg)
	}
	if err != nil {
		return fmt.Errorf("create the consumer %s: %w", spec.Name, err)
	}
	return nil
}

func (s ConsumerSpec) config() jetstream.ConsumerConfig {
	if s.MaxInFlight == 0 {
		s.MaxInFlight = -1
	}
	return jetstream.ConsumerConfig{
		Durable: s.Name, FilterSubject: s.Subject, AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.Lease, MaxAckPending: s.MaxInFlight, MaxDeliver: -1,
	}
}

// RestartConsumer recreates a consumer, so that unacknowledged messages are delivered again
// immediately. It is for a server whose workers died with it.
func (c *Conn) RestartConsumer(ctx context.Context, stream string, spec ConsumerSpec) error {
	cfg := spec.config()
	old, err := c.js.Consumer(ctx, stream, spec.Name)
	if err == nil {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, old.CachedInfo().AckFloor.Stream+1
		err = c.js.DeleteConsumer(ctx, stream, spec.Name)
	}
	if err == nil || errors.Is(err, jetstream.ErrConsumerNotFound) {
		_, err = c.js.CreateConsumer(ctx, stream, cfg)
	}
	if err != nil {
		return fmt.Errorf("recreate the consumer %s: %w", spec.Name, err)
	}
	return nil
}

// DeleteConsumer removes a consumer, if it exists.
func (c *Conn) DeleteConsumer(ctx context.Context, stream, name string) error {
	err := c.js.DeleteConsumer(ctx, stream, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// Consumer is a consumer on the servers.
type Consumer struct {
	c     jetstream.Consumer
	lease time.Duration
}

// Consumer opens a consumer. The error is ErrNotFound if it does not exist.
func (c *Conn) Consumer(ctx context.Context, stream, name string) (*Consumer, error) {
	q, err := c.js.Consumer(ctx, stream, name)
	if err != nil {
		return nil, fmt.Errorf("open the consumer %s: %w", name, notFound(err))
	}
	return &Consumer{q, q.CachedInfo().Config.AckWait}, nil
}

// Lease returns how long a worker may be silent.
func (q *Consumer) Lease() time.Duration { return q.lease }

// CountOpen returns how many messages are waiting or unacknowledged.
func (q *Consumer) CountOpen(ctx context.Context) (int, error) {
	info, err := q.c.Info(ctx)
	if err != nil {
		return 0, err
	}
	return int(info.NumPending) + info.NumAckPending, nil //nolint:gosec // no more than messages fit into a stream
}

// Fetch takes a message for a worker, waiting up to the given time. It returns nil if no
// message arrives.
func (q *Consumer) Fetch(wait time.Duration) (*Delivery, error) {
	batch, err := q.c.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		return nil, err
	}
	return q.first(batch)
}

// FetchUntil is Fetch that also stops waiting when ctx ends.
func (q *Consumer) FetchUntil(ctx context.Context, wait time.Duration) (*Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	batch, err := q.c.Fetch(1, jetstream.FetchContext(ctx))
	if err != nil {
		return nil, err
	}
	return q.first(batch)
}

func (q *Consumer) first(batch jetstream.MessageBatch) (*Delivery, error) {
	if m, ok := <-batch.Messages(); ok {
		d := &Delivery{m: m, lease: q.lease}
		d.Message = Message{Subject: m.Subject(), Header: flatHeader(m.Headers()), Data: m.Data()}
		if meta, err := m.Metadata(); err == nil {
			d.Seq, d.Time, d.Count = meta.Sequence.Stream, meta.Timestamp, meta.NumDelivered
		}
		return d, nil
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	return nil, nil //nolint:nilnil // nil means that there is no message
}

// Delivery is a message that was delivered to a worker.
type Delivery struct {
	Message
	Count uint64 // number of deliveries, including this one
	m     jetstream.Msg
	lease time.Duration
}

// Acknowledge marks the message as done, and waits for the servers' confirmation. If that fails,
// the message is delivered again.
func (d *Delivery) Acknowledge(ctx context.Context) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return d.m.DoubleAck(ctx)
}

// Return gives the message back, to be delivered again after a delay.
func (d *Delivery) Return(after time.Duration) error {
	if after <= 0 {
		return d.m.Nak()
	}
	return d.m.NakWithDelay(after)
}

// KeepAlive extends the lease several times per its duration, until stop is called. The
// function each, if not nil, is called as often.
func (d *Delivery) KeepAlive(each func()) (stop func()) {
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		beat := time.NewTicker(max(d.lease/3, 50*time.Millisecond))
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = d.m.InProgress() // a lost report is harmless: the next one may arrive
				if each != nil {
					each()
				}
			case <-ended:
				return
			}
		}
	}()
	return func() {
		close(ended)
		<-done
	}
}
