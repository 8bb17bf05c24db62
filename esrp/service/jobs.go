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

// jobs reads and appends events of jobs in the stream, for services and workers.
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
	maxMessage = 1 << 20        // bytes of a message, the default limit of NATS
	maxInline  = 256 << 10      // bytes of an event's data in its message; longer data is stored as a blob
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

// last returns the last event whose subject matches, without the data of a blob.
func (s *jobs) last(ctx context.Context, subject string) (jobEvent, error) {
	m, err := s.stream.Last(ctx, subject)
	if errors.Is(err, jet.ErrNotFound) {
		return jobEvent{}, errNoJob
	}
	if err != nil {
		return jobEvent{}, fmt.Errorf("read a job: %w", err)
	}
	return parseEvent(m)
}

// job returns the last event of a job with its data.
func (s *jobs) job(ctx context.Context, id string) (jobEvent, error) {
	e, err := s.last(ctx, jobPrefix(id)+"*")
	if err == nil && e.expired(s.now()) {
		err = errNoJob
	}
	if err != nil {
		return jobEvent{}, err
	}
	return s.withData(ctx, e)
}

// request returns the request of a job.
func (s *jobs) request(ctx context.Context, id string) (esrp.Request, error) {
	e, err := s.last(ctx, jobPrefix(id)+kindQueued)
	if err == nil {
		e, err = s.withData(ctx, e)
	}
	if err != nil {
		return esrp.Request{}, err
	}
	return esrp.DecodeRequest(e.data)
}

// next returns the first event of a job after a sequence number of the stream, with its data. The
// error is jet.ErrNotFound if no such event exists yet.
func (s *jobs) next(ctx context.Context, id string, after uint64) (jobEvent, error) {
	m, err := s.stream.Next(ctx, after+1, jobPrefix(id)+"*")
	if err != nil {
		return jobEvent{}, err
	}
	e, err := parseEvent(m)
	if err != nil {
		return jobEvent{}, err
	}
	return s.withData(ctx, e)
}

// withData returns an event with its data, which it reads from the blob if necessary.
func (s *jobs) withData(ctx context.Context, e jobEvent) (jobEvent, error) {
	if e.Blob == "" {
		return e, nil
	}
	data, err := s.blobs.GetBytes(ctx, e.Blob, maxBlob)
	if err != nil {
		return jobEvent{}, fmt.Errorf("event %d of job %s: %w", e.seq, e.id, err)
	}
	e.data = data
	return e, nil
}

// append appends e to the stream. e.seq is the sequence number of the last event under the job's key,
// or 0 if the key is new. It returns e with its own sequence number, time and blob. The error is
// jet.ErrConflict if another event was appended first. It retries until ctx ends.
func (s *jobs) append(ctx context.Context, e jobEvent) (jobEvent, error) {
	after := e.seq
	e.Time, e.Blob = s.now().UnixMilli(), ""
	data := e.data
	if len(data) > maxInline {
		blob, err := s.blobs.PutBytes(ctx, data)
		if err != nil {
			return jobEvent{}, err
		}
		e.Blob, data = blob, nil
	}
	header, err := json.Marshal(e.state)
	if err != nil {
		return jobEvent{}, err
	}
	m := jet.Message{Subject: jobPrefix(e.id) + e.kind, Header: map[string]string{headerState: string(header)}, Data: data}
	e.seq, err = s.stream.Append(ctx, m, after, keySubjects(e.id))
	return e, err
}

// appendEvent appends an event to a job that has started.
func (s *jobs) appendEvent(ctx context.Context, e jobEvent, kind string, data []byte) (jobEvent, error) {
	e.kind, e.data = kind, data
	return s.append(ctx, e)
}

// finish ends a job with a response, to which it adds the request's id, the times and the job. e is
// the last event of the job. The error is an *esrp.TransitionError if the job has ended, and
// jet.ErrConflict if another event was appended first.
func (s *jobs) finish(ctx context.Context, e jobEvent, end esrp.JobState, r esrp.Response) (jobEvent, error) {
	if _, err := e.jobState().To(end); err != nil {
		return jobEvent{}, err
	}
	id, err := esrp.ParseUUID(e.Request)
	if err != nil {
		return jobEvent{}, err
	}
	e.kind = endKind(end)
	finished := s.now().UnixMilli()
	r.Version, r.RequestID, r.Job = esrp.Version, id, e.record()
	r.Timing = &esrp.Timing{AcceptedAt: instant(e.Accepted), FinishedAt: instant(finished)}
	if e.Started != 0 {
		r.Timing.StartedAt = instant(e.Started)
		r.Timing.Millis(max(0, time.Duration(finished-e.Started)*time.Millisecond))
	}
	if e.data, err = r.Value().Canonical(); err != nil {
		return jobEvent{}, fmt.Errorf("response of job %s: %w", e.id, err)
	}
	// The key of a request that may be retried or was refused is freed, so that the next request with it
	// does not get the old failure. This includes backend failures, because a change of the configuration
	// may fix them.
	e.Free = end == esrp.JobCancelled || r.Error != nil &&
		(r.Error.Retryable || r.Error.Code == esrp.InvalidInputSemantic || r.Error.Code == esrp.BackendUnavailable)
	return s.append(ctx, e)
}

// notifyStop notifies the worker of a job that the job has ended. A worker that misses the notification
// notices the end within a third of a lease.
func (s *jobs) notifyStop(id string) { _ = s.conn.Notify(stopSubject(id)) }

// artifactPrefix is the prefix of the URIs of artifacts, before the hash of the content.
const artifactPrefix = esrp.Scheme + "artifacts/sha256/"

// artifactHash returns the hash in the URI of an artifact. An error is a *Failure.
func artifactHash(uri string) (string, error) {
	hash, ok := strings.CutPrefix(uri, artifactPrefix)
	const digits = 64
	if hash = strings.ToLower(hash); !ok || len(hash) != digits || strings.Trim(hash, "0123456789abcdef") != "" {
		return "", &Failure{Code: esrp.InvalidInputSemantic, Message: uri + " is not the URI of an artifact, which has the form " + artifactPrefix + "HASH"}
	}
	return hash, nil
}

// artifactError converts an error of reading an artifact to a *Failure, unless NATS is unavailable.
func (s *jobs) artifactError(uri string, err error) error {
	if err == nil || jet.IsOutage(err) {
		return err
	}
	if !errors.Is(err, jet.ErrNotFound) {
		s.log.Error("cannot read an artifact", "uri", uri, "err", err)
		return &Failure{Code: esrp.InvalidInputSemantic, Message: uri + ": " + err.Error()}
	}
	return &Failure{Code: esrp.InvalidInputSemantic, Message: uri + ": not found"}
}

// inlineArtifacts replaces the paths in a request's inputs with the contents of the artifacts.
func (s *jobs) inlineArtifacts(ctx context.Context, r *esrp.Request) error {
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
			return s.artifactError(in.Data, err)
		}
		r.Inputs[i].Data, r.Inputs[i].Encoding = encodeBody(data)
	}
	return nil
}
