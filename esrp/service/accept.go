package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// storeTime limits how long storing a request may take, for example while NATS has no quorum.
const storeTime = 10 * time.Second

// accept stores a request as a job, or finds the job that already has its key. doc is the JSON of
// the request. It returns the last event of the job. When it returns without an error, the job
// survives the death of this process. Errors caused by the caller are *Failure.
func (s *Service) accept(ctx context.Context, r esrp.Request, doc []byte) (jobEvent, error) {
	if err := r.ValidateStrictly(); err != nil {
		return jobEvent{}, asFailure(err)
	}
	if r.Mode.TimeoutMS > uint64(maxTimeout.Milliseconds()) {
		return jobEvent{}, &Failure{Code: esrp.InvalidInputSemantic, Message: fmt.Sprintf("mode.timeout_ms is %d; the maximum is %d", r.Mode.TimeoutMS, maxTimeout.Milliseconds())}
	}
	if err := s.o.Operations.Check(r); err != nil {
		return jobEvent{}, err
	}
	hash, err := r.HashPayload()
	if err != nil {
		return jobEvent{}, asFailure(err)
	}
	key := "key " + hash
	switch {
	case r.IdempotencyKey != nil && len(*r.IdempotencyKey) > maxKey:
		return jobEvent{}, &Failure{Code: esrp.InvalidInputSize, Message: fmt.Sprintf("idempotency_key has %d bytes; at most %d are accepted", len(*r.IdempotencyKey), maxKey)}
	case r.IdempotencyKey != nil:
		key = "key " + *r.IdempotencyKey
	case s.o.Operations.Repeatable(r):
		key = "repeatable " + s.o.NewID()
	}
	keep := max(s.o.Keep, time.Duration(r.Mode.TimeoutMS)*time.Millisecond)
	e := jobEvent{kind: kindQueued, data: doc, state: state{Request: r.ID.String(), Hash: hash, Accepted: s.now().UnixMilli(), Keep: keep.Milliseconds()}}
	limited, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	e, err = s.acceptWithKey(limited, e, key)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		s.log.Warn("cannot store a request", "err", err)
		return jobEvent{}, &Failure{Code: esrp.BackendUnavailable, Message: "the job cannot be stored now: NATS does not answer"}
	}
	return e, err
}

// acceptWithKey appends the first event of a job, or returns the last event of the job that has the
// key.
func (s *Service) acceptWithKey(ctx context.Context, e jobEvent, key string) (jobEvent, error) {
	sum := sha256.Sum256([]byte(key))
	first := newID(hex.EncodeToString(sum[:]))
	for {
		last, err := s.last(ctx, keySubjects(first))
		switch {
		case errors.Is(err, errNoJob):
			e.id, e.seq = first, 0
		case err != nil:
			return jobEvent{}, err
		case last.Free || last.expired(s.now()):
			if e.id, err = nextID(last.id); err != nil {
				return jobEvent{}, err
			}
			e.seq = last.seq
		case last.Hash != e.Hash:
			return jobEvent{}, &Failure{Code: esrp.InvalidInputSemantic, Message: "idempotency_key was used for another payload, with the hash " + last.Hash}
		default:
			return s.withData(ctx, last)
		}
		if err := s.checkOpenJobs(ctx); err != nil {
			return jobEvent{}, err
		}
		added, err := s.append(ctx, e)
		if !errors.Is(err, jet.ErrConflict) {
			if err == nil {
				s.openCount.increment()
			}
			return added, err
		}
	}
}

// waitForEnd waits until a job has ended, or ctx ends. It keeps waiting while NATS does not answer.
func (s *Service) waitForEnd(ctx context.Context, id string) (jobEvent, error) {
	// A server that does not have all events yet may answer the read that follows an event without that
	// event, which is not announced again.
	const rereadAfter = 2 * time.Second
	for {
		changed, unsubscribe := s.hub.subscribe(id)
		e, err := s.job(ctx, id)
		if jet.IsOutage(err) && ctx.Err() == nil {
			unsubscribe()
			jet.Pause(ctx, retryAfter)
			continue
		}
		if err != nil || e.final() {
			unsubscribe()
			return e, err
		}
		select {
		case <-changed:
		case <-time.After(rereadAfter):
		case <-ctx.Done():
		}
		unsubscribe()
		if ctx.Err() != nil {
			return e, ctx.Err()
		}
	}
}

// endJob ends a job with the state and the response that decide returns for its last event. If the state
// is empty, it changes nothing.
func (s *Service) endJob(ctx context.Context, id string, decide func(jobEvent) (esrp.JobState, esrp.Response, error)) (jobEvent, error) {
	for {
		e, err := s.job(ctx, id)
		if err != nil {
			return jobEvent{}, err
		}
		to, r, err := decide(e)
		if err != nil || to == "" {
			return e, err
		}
		ended, err := s.finish(ctx, e, to, r)
		if errors.Is(err, jet.ErrConflict) {
			continue
		}
		if err == nil {
			s.notifyStop(id)
		}
		return ended, err
	}
}

// cancelJob cancels a job. The error is an *esrp.TransitionError if the job has ended.
func (s *Service) cancelJob(ctx context.Context, id, reason string) (jobEvent, error) {
	return s.endJob(ctx, id, func(jobEvent) (esrp.JobState, esrp.Response, error) {
		return esrp.JobCancelled, failedResponse(&Failure{
			Code: esrp.Unknown, Message: reason,
			Details: esrp.ObjectValue(esrp.Member{Key: "cancelled", Value: esrp.BoolValue(true)}),
		}), nil
	})
}

// timeOutJob ends a job that has exceeded its time limit, unless it has just ended.
func (s *Service) timeOutJob(ctx context.Context, id string) (jobEvent, error) {
	r, err := s.request(ctx, id)
	if err != nil {
		return jobEvent{}, err
	}
	response := timeoutResponse(r)
	return s.endJob(ctx, id, func(e jobEvent) (esrp.JobState, esrp.Response, error) {
		switch e.jobState() {
		case esrp.JobQueued:
			return esrp.JobCancelled, response, nil // failing is only possible for a started job
		case esrp.JobStarted:
			return esrp.JobFailed, response, nil
		}
		return "", response, nil
	})
}

// timeoutResponse returns the response of a job that exceeded its time limit. It is retryable, with a longer
// limit, even if the job has changed something: what the job does next time is the caller's decision.
func timeoutResponse(r esrp.Request) esrp.Response {
	return failedResponse(&Failure{Code: esrp.Timeout, Message: fmt.Sprintf("it took longer than %d ms", r.Mode.TimeoutMS)})
}

// failedResponse returns the response for a failure.
func failedResponse(f *Failure) esrp.Response {
	return esrp.Response{Version: esrp.Version, Status: esrp.Failed, Error: f.record()}
}

// asFailure converts the error of an invalid record to a failure for the caller.
func asFailure(err error) *Failure {
	var f *Failure
	var invalid *esrp.InvalidError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &invalid):
		return &Failure{Code: invalid.Code, Message: invalid.Reason}
	}
	return &Failure{Code: esrp.InvalidInputSchema, Message: err.Error()}
}
