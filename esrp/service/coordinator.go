package service

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/seed-dec29ce4/eca/esrp"
)

// handleReport answers a worker's report after recording it.
func (s *Service) handleReport(m *nats.Msg) {
	var r report
	a := answer{Hear: hearOver, Reason: "the report is not understood"}
	if err := json.Unmarshal(m.Data, &r); err == nil {
		a, err = s.answer(s.closing, r)
		if errors.Is(err, errNoJob) {
			a = answer{Hear: hearOver, Reason: err.Error()}
		} else if err != nil {
			s.log.Warn("a worker's report could not be kept", "job", r.Job, "err", err)
			a = answer{Hear: hearAgain, Reason: err.Error()}
		}
	}
	body, err := encoded(a)
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil && s.closing.Err() == nil {
		s.log.Warn("a worker could not be answered", "job", r.Job, "err", err)
	}
}

func (s *Service) answer(ctx context.Context, r report) (a answer, err error) {
	if r.Say == sayBlob {
		return s.takePiece(ctx, r)
	}
	told := false
	err = s.write(ctx, func(tx *sql.Tx) error {
		j, err := jobOf(tx, r.Job)
		if err != nil {
			return err
		}
		switch {
		case j.state.Final():
			a = answer{Hear: hearOver, Reason: "the job is " + string(j.state)}
			return nil
		case r.Say == sayStart:
			a, told, err = s.grantLease(tx, j, r.Worker)
			return err
		case r.Say == sayDone:
			told, a.Hear = true, hearOver // the first result wins
			return s.conclude(tx, j, r)
		case j.worker != r.Worker:
			a = answer{Hear: hearOver, Reason: "another worker has the job"}
			return nil
		}
		a.Hear = hearRun
		switch r.Say {
		case sayProgress:
			if told = r.Number > j.reported; told {
				err = s.progress(tx, j, r)
			}
		case sayRelease:
			a.Hear = hearOver
			_, err = tx.Exec("UPDATE jobs SET worker = '', lease = 0, attempts = attempts - 1 WHERE id = ?", j.id)
			return err
		}
		if err != nil {
			return err
		}
		return s.extend(tx, j.id)
	})
	if err == nil && told {
		s.hub.notify(r.Job)
		if a.Hear == hearOver {
			s.ended(r.Job)
		}
	}
	return a, err
}

func (s *Service) extend(tx *sql.Tx, job string) error {
	_, err := tx.Exec("UPDATE jobs SET lease = ? WHERE id = ?", s.now().Add(s.o.Lease).UnixMilli(), job)
	return err
}

// grantLease gives a job to a worker, unless it belongs to another worker that is alive.
func (s *Service) grantLease(tx *sql.Tx, j job, worker string) (a answer, told bool, err error) {
	if j.worker != "" && j.worker != worker && s.now().Before(j.lease) {
		return answer{Hear: hearLater, LeaseMS: j.lease.Sub(s.now()).Milliseconds() + 1}, false, nil
	}
	doc, err := s.inputs.inlined(j.request)
	var unusable *Failure
	switch {
	case errors.As(err, &unusable): // a referenced file is gone: trying again does not help
		if j.state == esrp.JobQueued {
			if err := s.start(tx, &j); err != nil {
				return answer{}, false, err
			}
		}
		return answer{Hear: hearOver, Reason: unusable.Message}, true, s.finish(tx, &j, esrp.JobFailed, failed(unusable))
	case err != nil:
		return answer{}, false, err
	case j.worker == worker: // it did not get the answer
		return s.lent(j, doc), false, nil
	}
	switch {
	case j.state == esrp.JobQueued:
		err = s.start(tx, &j)
	case j.attempts >= s.o.Attempts:
		f := &Failure{Code: esrp.Unknown, Message: fmt.Sprintf("its workers were lost %d times", j.attempts), Final: true}
		return answer{Hear: hearOver, Reason: f.Message}, true, s.finish(tx, &j, esrp.JobFailed, failed(f))
	default:
		text := fmt.Sprintf("its worker was lost; it runs again (try %d)", j.attempts+1)
		err = s.addEvent(tx, j, esrp.JobProgressEvent, esrp.ObjectValue(esrp.Member{Key: "message", Value: esrp.StringValue(text)}))
	}
	if err != nil {
		return answer{}, false, err
	}
	j.attempts++
	if _, err := tx.Exec("UPDATE jobs SET worker = ?, attempts = ?, reported = 0 WHERE id = ?", worker, j.attempts, j.id); err != nil {
		return answer{}, false, err
	}
	if err := s.extend(tx, j.id); err != nil {
		return answer{}, false, err
	}
	return s.lent(j, doc), true, nil
}

// lent is the answer to a worker that has a job; doc is the request with the content of files in
// place of their paths.
func (s *Service) lent(j job, doc json.RawMessage) answer {
	return answer{Hear: hearRun, Attempt: j.attempts, Request: doc, LeaseMS: s.o.Lease.Milliseconds()}
}

func (s *Service) progress(tx *sql.Tx, j job, r report) error {
	data, err := esrp.Parse(r.Data)
	if err != nil {
		return err
	}
	if _, err := tx.Exec("UPDATE jobs SET reported = ? WHERE id = ?", r.Number, j.id); err != nil {
		return err
	}
	return s.addEvent(tx, j, esrp.JobProgressEvent, data)
}

// conclude records a worker's result.
func (s *Service) conclude(tx *sql.Tx, j job, r report) error {
	out, err := esrp.DecodeResponse(r.Data)
	if err != nil {
		out = failed(&Failure{Code: esrp.Unknown, Message: "the worker's result is not understood: " + err.Error()})
	}
	end := esrp.JobSucceeded
	if out.Status != esrp.Succeeded {
		end = esrp.JobFailed
	}
	return s.finish(tx, &j, end, out)
}

// prune removes jobs whose answers have been kept long enough.
func (s *Service) prune(ctx context.Context) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		const old = "finished > 0 AND finished + keep < ?"
		now := s.now().UnixMilli()
		if _, err := tx.Exec("DELETE FROM events WHERE job IN (SELECT id FROM jobs WHERE "+old+")", now); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM jobs WHERE "+old, now)
		return err
	})
}

// texts reads rows with one text column.
func texts(rows *sql.Rows) (out []string, err error) {
	defer rows.Close()
	for rows.Next() {
		var t string
		if err := rows.Scan(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, rows.Err()
}

// coordinatorTimeout is how long a worker waits for an answer before it asks again.
const coordinatorTimeout = 10 * time.Second
