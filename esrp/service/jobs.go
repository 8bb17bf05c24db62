package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// jobs are the jobs in the stream. Servers and workers use them alike.
type jobs struct {
	conn   *jet.Conn
	stream *jet.Stream
	blobs  *jet.Blobs
	now    func() time.Time
	log    *slog.Logger
}

// Settings of the stream and of the bucket for long data.
const (
	jobAge     = 72 * time.Hour // of events and blobs
	maxMessage = 1 << 20        // bytes of a message, which any NATS takes
	maxInline  = 256 << 10      // bytes of an event's data in its message; longer ones are blobs
	maxBlob    = 64 << 20       // bytes of an input, an output or a response
)

func layout() jet.Layout {
	return jet.Layout{
		Streams: []jet.StreamSpec{{Name: streamName, Subjects: []string{jobSubjects}, MaxSize: maxMessage, MaxAge: jobAge}},
		Blobs:   []jet.BlobsSpec{{Name: bucketName, MaxAge: jobAge}},
	}
}

// openJobs opens the stream and the bucket. The error is jet.ErrNotFound if they do not exist.
func openJobs(ctx context.Context, conn *jet.Conn, now func() time.Time, log *slog.Logger) (*jobs, error) {
	stream, err := conn.Stream(ctx, streamName)
	if err != nil {
		return nil, err
	}
	blobs, err := conn.Blobs(ctx, bucketName)
	if err != nil {
		return nil, err
	}
	return &jobs{conn, stream, blobs, now, log}, nil
}

// errNoJob means that the job does not exist, or no longer exists.
var errNoJob = errors.New("there is no such job")

// last returns the last event whose subject matches, without long data.
func (s *jobs) last(ctx context.Context, subject string) (entry, error) {
	m, err := s.stream.Last(ctx, subject)
	if errors.Is(err, jet.ErrNotFound) {
		return entry{}, errNoJob
	}
	if err != nil {
		return entry{}, fmt.Errorf("read a job: %w", err)
	}
	return parseEvent(m)
}

// job returns a job's last event with its data.
func (s *jobs) job(ctx context.Context, id string) (entry, error) {
	e, err := s.last(ctx, jobPrefix(id)+"*")
	if err == nil && e.expired(s.now()) {
		err = errNoJob
	}
	if err != nil {
		return entry{}, err
	}
	return s.whole(ctx, e)
}

// request returns the request of a job.
func (s *jobs) request(ctx context.Context, id string) (esrp.Request, error) {
	e, err := s.last(ctx, jobPrefix(id)+kindQueued)
	if err == nil {
		e, err = s.whole(ctx, e)
	}
	if err != nil {
		return esrp.Request{}, err
	}
	return esrp.DecodeRequest(e.data)
}

// next returns the first event of a job after a place in the stream, with its data. The error is
// jet.ErrNotFound if it has not happened yet.
func (s *jobs) next(ctx context.Context, id string, after uint64) (entry, error) {
	m, err := s.stream.Next(ctx, after+1, jobPrefix(id)+"*")
	if err != nil {
		return entry{}, err
	}
	e, err := parseEvent(m)
	if err != nil {
		return entry{}, err
	}
	return s.whole(ctx, e)
}

// whole reads an event's data from its blob.
func (s *jobs) whole(ctx context.Context, e entry) (entry, error) {
	if e.Blob == "" {
		return e, nil
	}
	data, err := s.blobs.GetBytes(ctx, e.Blob, maxBlob)
	if err != nil {
		return entry{}, fmt.Errorf("event %d of job %s: %w", e.seq, e.id, err)
	}
	e.data = data
	return e, nil
}

// append adds the event that follows e, which must be the last one under its job's key; seq 0 means
// that the key is new. It sets the event's time, place and blob. The error is jet.ErrConflict if
// another event came first. It tries again until ctx ends.
func (s *jobs) append(ctx context.Context, e entry) (entry, error) {
	after := e.seq
	e.Time, e.Blob = s.now().UnixMilli(), ""
	data := e.data
	if len(data) > maxInline {
		blob, err := s.blobs.PutBytes(ctx, data)
		if err != nil {
			return entry{}, err
		}
		e.Blob, data = blob, nil
	}
	header, err := json.Marshal(e.state)
	if err != nil {
		return entry{}, err
	}
	m := jet.Message{Subject: jobPrefix(e.id) + e.kind, Header: map[string]string{headerState: string(header)}, Data: data}
	e.seq, err = s.stream.Append(ctx, m, after, keySubjects(e.id))
	return e, err
}

// progress adds an event for listeners to a job that has started.
func (s *jobs) progress(ctx context.Context, e entry, kind string, data []byte) (entry, error) {
	e.kind, e.data = kind, data
	return s.append(ctx, e)
}

// finish ends a job with a response, and adds the request's id, the times and the job to it. e is
// the job's last event. If the job has ended, the error is an *esrp.TransitionError; it is
// jet.ErrConflict if another event came first.
func (s *jobs) finish(ctx context.Context, e entry, end esrp.JobState, r esrp.Response) (entry, error) {
	if _, err := e.jobState().To(end); err != nil {
		return entry{}, err
	}
	id, err := esrp.ParseUUID(e.Request)
	if err != nil {
		return entry{}, err
	}
	e.kind = kindOf(end)
	finished := s.now().UnixMilli()
	r.Version, r.RequestID, r.Job = esrp.Version, id, e.record()
	r.Timing = &esrp.Timing{AcceptedAt: instant(e.Accepted), FinishedAt: instant(finished)}
	if e.Started != 0 {
		r.Timing.StartedAt = instant(e.Started)
		r.Timing.Millis(max(0, time.Duration(finished-e.Started)*time.Millisecond))
	}
	if e.data, err = r.Value().Canonical(); err != nil {
		return entry{}, fmt.Errorf("response of job %s: %w", e.id, err)
	}
	// Frees the key if the request may be sent again or was refused, so that the next one does not get
	// the old failure. This includes failures of a backend, whose cause may be gone with the next
	// configuration.
	e.Free = end == esrp.JobCancelled || r.Error != nil &&
		(r.Error.Retryable || r.Error.Code == esrp.InvalidInputSemantic || r.Error.Code == esrp.BackendUnavailable)
	return s.append(ctx, e)
}

// stop notifies the worker of a job that the job has ended. A worker that misses it finds out
// within a third of a lease.
func (s *jobs) stop(id string) { _ = s.conn.Notify(stopSubject(id)) }

// artifactPrefix begins the URIs of artifacts; the content's hash follows.
const artifactPrefix = esrp.Scheme + "artifacts/sha256/"

// artifactHash returns the hash in the URI of an artifact. The error is a *Failure.
func artifactHash(uri string) (string, error) {
	hash, ok := strings.CutPrefix(uri, artifactPrefix)
	const digits = 64
	if hash = strings.ToLower(hash); !ok || len(hash) != digits || strings.Trim(hash, "0123456789abcdef") != "" {
		return "", &Failure{Code: esrp.InvalidInputSemantic, Message: uri + " is not an artifact: their URIs are " + artifactPrefix + "HASH"}
	}
	return hash, nil
}

// missing turns the error of an artifact that cannot be used into a *Failure.
func (s *jobs) missing(uri string, err error) error {
	if err == nil || jet.IsOutage(err) {
		return err
	}
	if !errors.Is(err, jet.ErrNotFound) {
		s.log.Error("an artifact cannot be used", "uri", uri, "err", err)
		return &Failure{Code: esrp.InvalidInputSemantic, Message: uri + ": " + err.Error()}
	}
	return &Failure{Code: esrp.InvalidInputSemantic, Message: uri + ": not found"}
}

// inline replaces the paths in a request's inputs by the contents of the artifacts.
func (s *jobs) inline(ctx context.Context, r *esrp.Request) error {
	for i, in := range r.Inputs {
		if in.Encoding != esrp.Path {
			continue
		}
		hash, err := artifactHash(in.Data)
		if err != nil {
			return err
		}
		data, err := s.blobs.GetBytes(ctx, hash, maxBlob)
		if err != nil {
			return s.missing(in.Data, err)
		}
		r.Inputs[i].Data, r.Inputs[i].Encoding = encode(data)
	}
	return nil
}
