package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// queue is the stream of waiting jobs.
type queue struct{ js jetstream.JetStream }

// replicas is how many nodes of a cluster store the queue: with three, one may be lost.
const replicas = 3

// The JetStream error codes that the code distinguishes.
const (
	noPeers     jetstream.ErrorCode = 10005 // the cluster currently has too few nodes
	noResources jetstream.ErrorCode = 10023
	noCluster   jetstream.ErrorCode = 10074 // NATS is not a cluster
)

// makeQueue creates the stream and its consumer, or finds them. It waits for a cluster that is
// starting or has lost a node.
func makeQueue(ctx context.Context, nc *nats.Conn, lease time.Duration, log *slog.Logger) (*queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	const patience, once, hope = 2 * time.Minute, 5 * time.Second, 3
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for try := 1; ; try++ {
		// A cluster without a leader does not answer.
		attempt, cancel := context.WithTimeout(ctx, once)
		err = makeStream(attempt, js, lease, try > hope, log)
		cancel()
		if err == nil {
			return &queue{js}, nil
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, fmt.Errorf("queue of jobs: %w", err)
		}
	}
}

// makeStream creates the stream and its consumer. less allows fewer replicas if the cluster has too
// few nodes.
func makeStream(ctx context.Context, js jetstream.JetStream, lease time.Duration, less bool, log *slog.Logger) error {
	cfg := jetstream.StreamConfig{
		Name: streamName, Subjects: []string{jobSubjects}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas,
	}
	has := 1
	if there, err := js.Stream(ctx, streamName); err == nil {
		has = there.CachedInfo().Config.Replicas
		cfg.Replicas = max(has, replicas) // the user may have configured more
	}
	stream, err := js.CreateOrUpdateStream(ctx, cfg)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && (refused.ErrorCode == noCluster || less && (refused.ErrorCode == noPeers || refused.ErrorCode == noResources)) {
		if refused.ErrorCode != noCluster {
			log.Warn("the cluster has too few nodes to keep the queue of jobs as often as it should", "times", has, "err", err)
		}
		cfg.Replicas = has
		stream, err = js.CreateOrUpdateStream(ctx, cfg)
	}
	if err == nil {
		_, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxDeliver: -1, MaxAckPending: -1,
		})
	}
	return err
}

// watch checks once per lease whether the queue has all jobs that it should have: a cluster with
// too few replicas can lose jobs. It sends missing jobs again.
func (s *Service) watch() {
	tick := time.NewTicker(s.o.Lease)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.closing.Done():
			return
		}
		if err := s.refill(s.closing); err != nil && s.closing.Err() == nil {
			s.log.Warn("the queue of jobs could not be looked at; trying again", "err", err)
		}
	}
}

// refill sends all jobs to the queue again if some are missing.
func (s *Service) refill(ctx context.Context) error {
	before, err := s.sent(ctx)
	if err != nil || len(before) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Lease)
	defer cancel()
	has, err := s.queue.holds(ctx, jobSubject(s.id))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = makeQueue(ctx, s.nc, s.o.Lease, s.log)
	}
	if err != nil {
		return err
	}
	// Jobs that were open before and still are, were open while the queue was counted.
	after, err := s.sent(ctx)
	if err != nil {
		return err
	}
	open := 0
	for id := range after {
		if before[id] {
			open++
		}
	}
	if has >= open {
		return nil
	}
	s.log.Warn("the queue has lost jobs; they are put into it again", "jobs", open, "queue", has)
	if err := s.unsend(ctx); err != nil {
		return err
	}
	s.wake()
	return nil
}

// holds counts the jobs of a server in the queue.
func (q *queue) holds(ctx context.Context, subject string) (n int, err error) {
	stream, err := q.js.Stream(ctx, streamName)
	if err != nil {
		return 0, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return 0, err
	}
	for _, count := range info.State.Subjects {
		n += int(count) //nolint:gosec // no more than jobs
	}
	return n, nil
}

// sent returns the open jobs that were sent to the queue.
func (s *Service) sent(ctx context.Context) (map[string]bool, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM jobs WHERE state IN ('queued', 'started') AND sent = 1")
	if err != nil {
		return nil, err
	}
	ids, err := texts(rows)
	out := make(map[string]bool, len(ids))
	for _, id := range ids {
		out[id] = true
	}
	return out, err
}

// unsend marks all open jobs to be sent to the queue again.
func (s *Service) unsend(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "UPDATE jobs SET sent = 0 WHERE state IN ('queued', 'started')")
	return err
}

// wake makes send look for new jobs.
func (s *Service) wake() {
	select {
	case s.unsent <- struct{}{}:
	default:
	}
}

// send sends accepted jobs to the queue, until the service ends. A job may be sent twice: the
// coordinator runs it only once.
func (s *Service) send() {
	for {
		select {
		case <-s.unsent:
		case <-s.closing.Done():
			return
		}
		for {
			more, err := s.sendSome(s.closing)
			if s.closing.Err() != nil {
				return
			}
			if err == nil {
				if !more {
					break
				}
				continue
			}
			s.log.Warn("jobs could not be put into the queue; trying again", "err", err)
			select {
			case <-time.After(retryAfter):
			case <-s.closing.Done():
				return
			}
		}
	}
}

func (s *Service) sendSome(ctx context.Context) (more bool, err error) {
	const some = 100
	rows, err := s.db.QueryContext(ctx, "SELECT id FROM jobs WHERE state IN ('queued', 'started') AND sent = 0 ORDER BY number LIMIT ?", some)
	if err != nil {
		return false, err
	}
	ids, err := texts(rows)
	if err != nil {
		return false, err
	}
	for _, id := range ids {
		body, err := json.Marshal(jobRef{Server: s.id, Job: id})
		if err != nil {
			return false, err
		}
		if _, err := s.queue.js.Publish(ctx, jobSubject(s.id), body); err != nil {
			return false, err
		}
		if _, err := s.db.ExecContext(ctx, "UPDATE jobs SET sent = 1 WHERE id = ?", id); err != nil {
			return false, err
		}
	}
	return len(ids) == some, nil
}

// recover fills the queue again, because its content may be lost. Workers of an earlier process
// have no jobs any more.
func (s *Service) recover(ctx context.Context) error {
	if s.o.NATS == "" && s.o.NATSListen == "" {
		if _, err := s.db.ExecContext(ctx, "UPDATE jobs SET worker = '', lease = 0"); err != nil {
			return err
		}
	}
	return s.unsend(ctx)
}

// clean removes answers that have been kept long enough, until the service ends.
func (s *Service) clean() {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		if err := s.prune(s.closing); err != nil && s.closing.Err() == nil {
			s.log.Warn("old jobs could not be removed", "err", err)
		}
		select {
		case <-tick.C:
		case <-s.closing.Done():
			return
		}
	}
}
