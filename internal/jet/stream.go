package jet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Message is a message of a stream.
type Message struct {
	Subject string
	Header  map[string]string
	Data    []byte
	Seq     uint64    // sequence number in the stream
	Time    time.Time // when a server received it
}

func fromRaw(m *jetstream.RawStreamMsg) Message {
	return Message{Subject: m.Subject, Header: flatHeader(m.Header), Data: m.Data, Seq: m.Sequence, Time: m.Time}
}

func flatHeader(h nats.Header) map[string]string {
	out := make(map[string]string, len(h))
	for key := range h {
		out[key] = h.Get(key)
	}
	return out
}

// Stream is a stream on the servers.
type Stream struct {
	c    *Conn
	name string
	s    jetstream.Stream
}

// Stream opens a stream. The error is ErrNotFound if it does not exist.
func (c *Conn) Stream(ctx context.Context, name string) (*Stream, error) {
	s, err := c.js.Stream(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("open the stream %s: %w", name, notFound(err))
	}
	return &Stream{c, name, s}, nil
}

// readTime bounds one read of a message. A server that stops meanwhile never answers.
const readTime = 5 * time.Second

// Last returns the last message whose subject matches, or ErrNotFound.
func (s *Stream) Last(ctx context.Context, subject string) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	m, err := s.s.GetLastMsgForSubject(ctx, subject)
	if err != nil {
		return Message{}, notFound(err)
	}
	return fromRaw(m), nil
}

// Next returns the first message from seq on whose subject matches, or ErrNotFound.
func (s *Stream) Next(ctx context.Context, seq uint64, subject string) (Message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	m, err := s.s.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
	if err != nil {
		return Message{}, notFound(err)
	}
	return fromRaw(m), nil
}

// LastSeq returns the sequence number of the stream's last message; 0 if there never was one.
func (s *Stream) LastSeq(ctx context.Context) (uint64, error) {
	info, err := s.s.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the state of the stream %s: %w", s.name, err)
	}
	return info.State.LastSeq, nil
}

// Has reports whether there are messages whose subject matches.
func (s *Stream) Has(ctx context.Context, subject string) (bool, error) {
	info, err := s.s.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return false, fmt.Errorf("read the state of the stream %s: %w", s.name, err)
	}
	return len(info.State.Subjects) > 0, nil
}

// Purge removes the messages whose subject matches.
func (s *Stream) Purge(ctx context.Context, subject string) error {
	return s.s.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// Limits of one attempt to append, and of the pause before the next.
const (
	appendTry = 5 * time.Second
	minPause  = 20 * time.Millisecond
	maxPause  = 5 * time.Second
)

// headerID identifies an append. It is not the header by which servers detect duplicates: they
// would store each for minutes, and the expected sequence number rejects duplicates anyway.
const headerID = "Jet-Id"

// Append appends a message if after is the sequence number of the last message whose subject matches
// filter, or is 0 and no message matches. Otherwise the error is ErrConflict. While the servers do
// not answer, Append retries until ctx ends; the message is stored once.
func (s *Stream) Append(ctx context.Context, m Message, after uint64, filter string) (seq uint64, err error) {
	msg := nats.NewMsg(m.Subject)
	msg.Data = m.Data
	for key, value := range m.Header {
		msg.Header.Set(key, value)
	}
	id := rand.Text()
	msg.Header.Set(headerID, id)
	expect := jetstream.WithExpectLastSequenceForSubject(after, filter)
	if filter == m.Subject {
		expect = jetstream.WithExpectLastSequencePerSubject(after)
	}
	for wait := minPause; ; wait = min(2*wait, maxPause) {
		limited, cancel := context.WithTimeout(ctx, appendTry)
		ack, err := s.c.js.PublishMsg(limited, msg, expect)
		cancel()
		if err == nil {
			return ack.Sequence, nil
		}
		if isPermanent(err) {
			return 0, fmt.Errorf("append to %s: %w", m.Subject, notFound(err))
		}
		// Although there was no answer, this message may be stored, or another one.
		last, lookErr := s.Last(ctx, filter)
		switch {
		case lookErr == nil && last.Header[headerID] == id:
			return last.Seq, nil
		case lookErr == nil && last.Seq != after, isConflict(err) && errors.Is(lookErr, ErrNotFound) && after != 0:
			return 0, fmt.Errorf("append to %s: %w", m.Subject, ErrConflict)
		}
		if ctx.Err() != nil {
			return 0, fmt.Errorf("append to %s: %w", m.Subject, errors.Join(err, ctx.Err()))
		}
		if !isConflict(err) { // a message that is being stored may still fail
			s.c.log.Warn("NATS does not take a message; trying again", "subject", m.Subject, "err", err)
		}
		Pause(ctx, wait)
	}
}

// DeleteStream removes a stream, if it exists, with its messages and consumers.
func (c *Conn) DeleteStream(ctx context.Context, name string) error {
	err := c.js.DeleteStream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	return err
}

// PublishAsync sends a message without waiting for the acknowledgement. It fails if too many
// acknowledgements are outstanding and none arrives within wait.
func (c *Conn) PublishAsync(subject string, data []byte, wait time.Duration) error {
	_, err := c.js.PublishAsync(subject, data, jetstream.WithStallWait(wait))
	return err
}

// FollowOptions select messages.
type FollowOptions struct {
	After       uint64 // the sequence number before the first message
	HeadersOnly bool
}

// Follow calls the function each for every existing and new message of a stream, in order, until ctx
// ends or the function returns an error. If reading fails, it resumes after the last message.
func (c *Conn) Follow(ctx context.Context, stream string, o FollowOptions, each func(Message) error) error {
	for ctx.Err() == nil {
		stopped, err := c.followOnce(ctx, stream, &o, each)
		if stopped {
			return err
		}
		if ctx.Err() == nil {
			c.log.Warn("NATS does not deliver; trying again", "stream", stream, "err", err)
			Pause(ctx, time.Second)
		}
	}
	return ctx.Err()
}

// followOnce reads until that fails, or until each returns an error: then stopped is true.
func (c *Conn) followOnce(ctx context.Context, stream string, o *FollowOptions, each func(Message) error) (stopped bool, err error) {
	cfg := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: o.After + 1, HeadersOnly: o.HeadersOnly}
	consumer, err := c.js.OrderedConsumer(ctx, stream, cfg)
	if err != nil {
		return false, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return false, err
	}
	defer messages.Stop()
	defer context.AfterFunc(ctx, messages.Stop)()
	for {
		m, err := messages.Next()
		if err != nil {
			return false, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return false, err
		}
		if meta.Sequence.Stream <= o.After {
			continue
		}
		if err := each(Message{Subject: m.Subject(), Header: flatHeader(m.Headers()), Data: m.Data(), Seq: meta.Sequence.Stream, Time: meta.Timestamp}); err != nil {
			return true, err
		}
		o.After = meta.Sequence.Stream
	}
}
