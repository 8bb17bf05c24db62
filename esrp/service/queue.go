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

// queue is the stream of jobs that wait.
type queue struct{ js jetstream.JetStream }

// replicas is how many nodes of a cluster keep the queue: with three, one may be lost.
const replicas = 3

// Codes of JetStream errors that are decided on.
const (
	noPeers     jetstream.ErrorCode = 10005 // the cluster has too few nodes, now
	noResources jetstream.ErrorCode = 10023
	noCluster   jetstream.ErrorCode = 10074 // NATS is no cluster
)

// makeQueue makes the stream and its consumer, or finds them. A cluster that is only just
// starting, or has lost a node, is waited for.
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

// makeStream makes the stream and its consumer. less lets a cluster that has too few nodes
// keep it less often than it should.
func makeStream(ctx context.Context, js jetstream.JetStream, lease time.Duration, less bool, log *slog.Logger) error {
	cfg := jetstream.StreamConfig{
		Name: streamName, Subjects: []string{jobSubjects}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, Replicas: replicas,
	}
	has := 1
	if there, err := js.Stream(ctx, streamName); err == nil {
		has = there.CachedInfo().Config.Replicas
		cfg.Replicas = max(has, replicas) // somebody may want more
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

// watch looks every lease whether the queue has all jobs that it was given: a cluster can lose
// what it did not keep often enough. What is missing is given again.
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

// refill gives the queue all jobs again if it has fewer than it should.
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
	// Those that were open then and still are were so when the queue was counted.
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

// sent returns the jobs that are not over and that the queue was given.
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

// unsend has all jobs that are not over put into the queue again.
func (s *Service) unsend(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "UPDATE jobs SET sent = 0 WHERE state IN ('queued', 'started')")
	return err
}

// wake has send look.
func (s *Service) wake() {
	select {
	case s.unsent <- struct{}{}:
	default:
	}
}

// send puts what was accepted into the queue, until the service ends. A job may come into
// it twice: the desk lets it run once.
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
		body, err := json.Marshal(order{Server: s.id, Job: id})
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

// recover has the queue filled again: what it had may be gone. Workers of a process that is
// no more have nothing.
func (s *Service) recover(ctx context.Context) error {
	if s.o.NATS == "" && s.o.NATSListen == "" {
		if _, err := s.db.ExecContext(ctx, "UPDATE jobs SET worker = '', lease = 0"); err != nil {
			return err
		}
	}
	return s.unsend(ctx)
}

// clean removes answers that were kept long enough, until the service ends.
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
