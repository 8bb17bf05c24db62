package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
)

// job is a row of jobs.
type job struct {
	id       string
	hash     string
	request  []byte
	state    esrp.JobState
	attempts int
	worker   string
	lease    time.Time
	reported int
	accepted time.Time
	started  time.Time // zero before the start
	response []byte    // nil before the end
}

const jobColumns = "id, hash, request, state, attempts, worker, lease, reported, accepted, started, response"

// errNoJob means that the job does not exist, or no longer exists.
var errNoJob = errors.New("there is no such job")

type row interface{ Scan(dest ...any) error }

func scanJob(r row) (job, error) {
	var j job
	var lease, accepted, started int64
	err := r.Scan(&j.id, &j.hash, &j.request, &j.state, &j.attempts, &j.worker, &lease, &j.reported, &accepted, &started, &j.response)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoJob
	}
	j.lease, j.accepted = time.UnixMilli(lease), time.UnixMilli(accepted)
	if started != 0 {
		j.started = time.UnixMilli(started)
	}
	return j, err
}

func jobOf(tx *sql.Tx, id string) (job, error) {
	return scanJob(tx.QueryRow("SELECT "+jobColumns+" FROM jobs WHERE id = ?", id))
}

// job reads a job.
func (s *Service) job(ctx context.Context, id string) (job, error) {
	return scanJob(s.db.QueryRowContext(ctx, "SELECT "+jobColumns+" FROM jobs WHERE id = ?", id))
}

// record returns the job in the form of records.
func (j job) record() *esrp.Job {
	id, _ := esrp.ParseUUID(j.id) // created by eca
	return &esrp.Job{ID: id, State: j.state}
}

// answer is the answer to callers: the job's response, or that the job was accepted.
func (j job) answer() ([]byte, esrp.Status, error) {
	if j.response != nil {
		r, err := esrp.DecodeResponse(j.response)
		return j.response, r.Status, err
	}
	r, err := esrp.DecodeRequest(j.request)
	if err != nil {
		return nil, "", err
	}
	accepted := esrp.At(j.accepted)
	out := esrp.Response{
		Version: esrp.Version, RequestID: r.ID, Status: esrp.Accepted, Job: j.record(),
		Timing: &esrp.Timing{AcceptedAt: &accepted},
	}
	if !j.started.IsZero() {
		started := esrp.At(j.started)
		out.Timing.StartedAt = &started
	}
	doc, err := out.Value().Canonical()
	return doc, out.Status, err
}

// addEvent appends an event to a job.
func (s *Service) addEvent(tx *sql.Tx, j job, kind esrp.JobEventType, data esrp.Value) error {
	e := esrp.JobEvent{Type: kind, JobID: j.record().ID, Timestamp: esrp.At(s.now().Truncate(time.Millisecond)), Data: data}
	body, err := e.Value().Canonical()
	if err != nil {
		return fmt.Errorf("event of job %s: %w", j.id, err)
	}
	_, err = tx.Exec("INSERT INTO events (job, seq, kind, body) SELECT ?1, coalesce(max(seq) + 1, 0), ?2, ?3 FROM events WHERE job = ?1",
		j.id, string(kind), body)
	return err
}

// start moves a queued job to started.
func (s *Service) start(tx *sql.Tx, j *job) error {
	next, err := j.state.To(esrp.JobStarted)
	if err != nil {
		return err
	}
	j.state, j.started = next, s.now().Truncate(time.Millisecond)
	if _, err := tx.Exec("UPDATE jobs SET state = ?, started = ? WHERE id = ?", string(next), j.started.UnixMilli(), j.id); err != nil {
		return err
	}
	return s.addEvent(tx, *j, esrp.JobStartedEvent, esrp.ObjectValue())
}

// finish ends a job with a response, and adds the request's id, the times and the job to it. If the
// job has already ended, the error is an *esrp.TransitionError.
func (s *Service) finish(tx *sql.Tx, j *job, end esrp.JobState, r esrp.Response) error {
	next, err := j.state.To(end)
	if err != nil {
		return err
	}
	request, err := esrp.DecodeRequest(j.request)
	if err != nil {
		return err
	}
	j.state = next
	accepted, finished := esrp.At(j.accepted), esrp.At(s.now().Truncate(time.Millisecond))
	r.Version, r.RequestID, r.Job = esrp.Version, request.ID, j.record()
	r.Timing = &esrp.Timing{AcceptedAt: &accepted, FinishedAt: &finished}
	if !j.started.IsZero() {
		started := esrp.At(j.started)
		r.Timing.StartedAt = &started
		r.Timing.Millis(max(0, finished.Sub(j.started)))
	}
	if j.response, err = r.Value().Canonical(); err != nil {
		return fmt.Errorf("response of job %s: %w", j.id, err)
	}
	// Frees the key if the request may be sent again or was refused, so that the next one does not get
	// the old failure. This includes failures of a backend, whose cause may be gone with the next
	// configuration.
	free := end == esrp.JobCancelled || r.Error != nil &&
		(r.Error.Retryable || r.Error.Code == esrp.InvalidInputSemantic || r.Error.Code == esrp.BackendUnavailable)
	_, err = tx.Exec("UPDATE jobs SET state = ?, finished = ?, response = ?, worker = '', key = CASE WHEN ? THEN NULL ELSE key END WHERE id = ?",
		string(next), finished.UnixMilli(), j.response, free, j.id)
	if err != nil {
		return err
	}
	for _, a := range r.Artifacts {
		if err := s.addEvent(tx, *j, esrp.ArtifactCreated, artifactValue(a)); err != nil {
			return err
		}
	}
	data := esrp.ObjectValue(esrp.Member{Key: "response", Value: r.Value()})
	switch end {
	case esrp.JobFailed:
		e, _ := r.Value().Get("error")
		data.Members = append(data.Members, esrp.Member{Key: "error", Value: e})
	case esrp.JobCancelled:
		data = esrp.ObjectValue(esrp.Member{Key: "reason", Value: esrp.StringValue(r.Error.Message)})
	}
	return s.addEvent(tx, *j, next.Event(), data)
}

// artifactValue returns an artifact in the form of responses.
func artifactValue(a esrp.Artifact) esrp.Value {
	list, _ := esrp.Response{Artifacts: []esrp.Artifact{a}}.Value().Get("artifacts")
	return list.Items[0]
}

// entry is an event of a job in the form in which it is sent.
type entry struct {
	seq  int64
	kind esrp.JobEventType
	body []byte
}

// final reports whether no event follows.
func (e entry) final() bool {
	return e.kind == esrp.JobCompletedEvent || e.kind == esrp.JobFailedEvent || e.kind == esrp.JobCancelledEvent
}

// events reads the events of a job after a given one, a limited number at a time.
func (s *Service) events(ctx context.Context, id string, after int64) (out []entry, err error) {
	const some = 200
	rows, err := s.db.QueryContext(ctx, "SELECT seq, kind, body FROM events WHERE job = ? AND seq > ? ORDER BY seq LIMIT ?", id, after, some)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e entry
		if err := rows.Scan(&e.seq, &e.kind, &e.body); err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, rows.Err()
}
