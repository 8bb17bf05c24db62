package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
)

// accept accepts a request, written as doc, or finds the job that already has its key. When it
// returns without an error, the job survives the death of the process. Errors caused by the caller
// are *Failure.
func (s *Service) accept(ctx context.Context, r esrp.Request, doc []byte) (j job, err error) {
	if err := r.ValidateStrictly(); err != nil {
		return job{}, failureOf(err)
	}
	if r.Mode.TimeoutMS > uint64(maxTimeout.Milliseconds()) {
		return job{}, &Failure{Code: esrp.InvalidInputSemantic, Message: fmt.Sprintf("mode.timeout_ms is %d; at most %d is served", r.Mode.TimeoutMS, maxTimeout.Milliseconds())}
	}
	if err := s.o.Operations.Check(r); err != nil {
		return job{}, err
	}
	hash, err := r.HashPayload()
	if err != nil {
		return job{}, failureOf(err)
	}
	var key sql.NullString
	switch {
	case r.IdempotencyKey != nil:
		key = sql.NullString{String: *r.IdempotencyKey, Valid: true}
	case !s.o.Operations.Repeatable(r):
		key = sql.NullString{String: hash, Valid: true}
	}
	if len(key.String) > maxKey {
		return job{}, &Failure{Code: esrp.InvalidInputSize, Message: fmt.Sprintf("idempotency_key has %d bytes; at most %d are taken", len(key.String), maxKey)}
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		if key.Valid {
			j, err = scanJob(tx.QueryRow("SELECT "+jobColumns+" FROM jobs WHERE key = ?", key.String))
			if err == nil && j.hash != hash {
				return &Failure{Code: esrp.InvalidInputSemantic, Message: "idempotency_key was used for another payload, with the hash " + j.hash}
			}
			if !errors.Is(err, errNoJob) {
				return err
			}
		}
		var open int
		if err := tx.QueryRow("SELECT count(*) FROM jobs WHERE state IN ('queued', 'started')").Scan(&open); err != nil {
			return err
		}
		if open >= s.o.MaxJobs {
			return &Failure{Code: esrp.BackendUnavailable, Message: fmt.Sprintf("%d jobs wait or run already", open)}
		}
		j = job{id: s.o.NewID(), hash: hash, request: doc, state: esrp.JobQueued, accepted: s.now()}
		keep := max(s.o.Keep, time.Duration(r.Mode.TimeoutMS)*time.Millisecond)
		_, err := tx.Exec("INSERT INTO jobs (id, key, hash, request, state, accepted, keep) VALUES (?, ?, ?, ?, ?, ?, ?)",
			j.id, key, hash, doc, string(j.state), j.accepted.UnixMilli(), keep.Milliseconds())
		if err != nil {
			return err
		}
		return s.addEvent(tx, j, esrp.JobQueuedEvent, esrp.ObjectValue())
	})
	if err != nil {
		return job{}, err
	}
	s.wake()
	return j, nil
}

// wait waits until a job has ended, or ctx ends.
func (s *Service) wait(ctx context.Context, id string) (job, error) {
	for {
		news, leave := s.hub.subscribe(id)
		j, err := s.job(ctx, id)
		if err != nil || j.state.Final() {
			leave()
			return j, err
		}
		select {
		case <-news:
			leave()
		case <-ctx.Done():
			leave()
			return j, ctx.Err()
		}
	}
}

// cancelJob cancels a job. The error is an *esrp.TransitionError if the job has ended.
func (s *Service) cancelJob(ctx context.Context, id, reason string) (j job, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if j, err = jobOf(tx, id); err != nil {
			return err
		}
		return s.finish(tx, &j, esrp.JobCancelled, cancelled(reason))
	})
	if err == nil {
		s.ended(id)
	}
	return j, err
}

func cancelled(reason string) esrp.Response {
	return failed(&Failure{
		Code: esrp.Unknown, Message: reason,
		Details: esrp.ObjectValue(esrp.Member{Key: "cancelled", Value: esrp.BoolValue(true)}),
	})
}

// expire ends a job whose caller's time limit has passed.
func (s *Service) expire(ctx context.Context, id string) (j job, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if j, err = jobOf(tx, id); err != nil || j.state.Final() {
			return err // it ended just in time
		}
		end := esrp.JobFailed
		if j.state == esrp.JobQueued {
			end = esrp.JobCancelled // a job that never started cannot fail
		}
		return s.finish(tx, &j, end, failed(s.timeout(j)))
	})
	if err == nil {
		s.ended(id)
	}
	return j, err
}

// timeout is the failure of a job that exceeded its time limit.
func (s *Service) timeout(j job) *Failure {
	r, err := esrp.DecodeRequest(j.request)
	return &Failure{
		Code: esrp.Timeout, Message: fmt.Sprintf("it took longer than %d ms", r.Mode.TimeoutMS),
		Final: err != nil || !s.o.Operations.Repeatable(r),
	}
}

// ended notifies all waiting callers and the worker that a job has ended.
func (s *Service) ended(id string) {
	s.hub.notify(id)
	s.blobs.drop(id)
	_ = s.nc.Publish(stopSubject(id), nil) // a worker that misses this learns it with its next report
}

// failed is the response of a failure.
func failed(f *Failure) esrp.Response {
	return esrp.Response{Version: esrp.Version, Status: esrp.Failed, Error: f.record()}
}

// failureOf converts an error of a record into a failure for its caller.
func failureOf(err error) *Failure {
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
