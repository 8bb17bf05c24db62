package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// maxMessage is the longest message of the embedded NATS, in bytes.
const maxMessage = 8 << 20

// embed starts a NATS server in this process and connects to it.
func embed(o Options) (*server.Server, *nats.Conn, error) {
	opts := &server.Options{
		ServerName: "esrp", JetStream: true, StoreDir: filepath.Join(o.Dir, "nats"),
		Authorization: o.Token, MaxPayload: maxMessage,
		DontListen: o.NATSListen == "", NoSigs: true, NoLog: true,
	}
	if o.NATSListen != "" {
		host, port, err := net.SplitHostPort(o.NATSListen)
		if err != nil {
			return nil, nil, err
		}
		if opts.Port, err = strconv.Atoi(port); err != nil {
			return nil, nil, fmt.Errorf("port %q is no number", port)
		}
		if opts.Port == 0 {
			opts.Port = server.RANDOM_PORT
		}
		if opts.Host = host; host == "" {
			opts.Host = "127.0.0.1"
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("embedded NATS: %w", err)
	}
	s.Start()
	const patience = 30 * time.Second
	if !s.ReadyForConnections(patience) {
		s.Shutdown()
		return nil, nil, fmt.Errorf("embedded NATS does not start; can it listen at %q?", o.NATSListen)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Token(o.Token))
	if err != nil {
		s.Shutdown()
		return nil, nil, fmt.Errorf("embedded NATS: %w", err)
	}
	return s, nc, nil
}

// Dial connects to NATS, and again whenever the connection is lost. It waits for the first
// connection until ctx ends. A token, unless it is empty, is sent unless the URL has
// credentials.
func Dial(ctx context.Context, url, token string, log *slog.Logger) (*nats.Conn, error) {
	connected := make(chan struct{}, 1)
	opts := []nats.Option{
		nats.Name("esrp"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(500 * time.Millisecond),
		nats.ConnectHandler(func(*nats.Conn) { connected <- struct{}{} }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("NATS is lost; trying to reach it again", "err", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "err", err) }),
	}
	if token != "" {
		opts = append(opts, nats.Token(token))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if nc.IsConnected() {
		return nc, nil
	}
	select {
	case <-connected:
		return nc, nil
	case <-ctx.Done():
		err := nc.LastError()
		nc.Close()
		return nil, errors.Join(fmt.Errorf("connect to NATS: %w", ctx.Err()), err)
	}
}

// queue is the stream of jobs that wait.
type queue struct{ js jetstream.JetStream }

// makeQueue makes the stream and its consumer, or finds them.
func makeQueue(ctx context.Context, nc *nats.Conn, lease time.Duration) (*queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: streamName, Subjects: []string{jobSubjects}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
	})
	if err == nil {
		_, err = stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
			Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: lease, MaxDeliver: -1, MaxAckPending: -1,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("queue of jobs: %w", err)
	}
	return &queue{js}, nil
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

// recover has the queue filled again: what it had may be gone.
func (s *Service) recover(ctx context.Context) error {
	_, err := s.db.ExecContext(ctx, "UPDATE jobs SET sent = 0 WHERE state IN ('queued', 'started')")
	return err
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
