package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// The names in NATS. The subject of an event is the prefix of its job, followed by its kind.
const (
	streamName     = "ESRP"
	consumerName   = "workers"
	bucketName     = "esrp-blobs"
	jobSubjects    = "esrp.job.*.*.*" // key, generation, kind
	queuedSubjects = "esrp.job.*.*." + kindQueued
)

func stopSubject(id string) string { return "esrp.stop." + id }

// The kinds of events. The last event of a job determines its state.
const (
	kindQueued    = "queued"    // data: the request
	kindStarted   = "started"   // an attempt started; data: none for the first attempt, otherwise a progress message
	kindProgress  = "progress"  // data: the progress
	kindArtifact  = "artifact"  // an output was stored; data: the artifact
	kindReleased  = "released"  // the worker released the job; data: a progress message
	kindCompleted = "completed" // data: the response, also for the next two
	kindFailed    = "failed"
	kindCancelled = "cancelled"
)

// endKind returns the kind of the event that ends a job.
func endKind(end esrp.JobState) string {
	switch end {
	case esrp.JobSucceeded:
		return kindCompleted
	case esrp.JobCancelled:
		return kindCancelled
	}
	return kindFailed
}

// headerState is the header with an event's state, in JSON.
const headerState = "Esrp-State"

// state is the state of the job after an event, which each event contains. Times are milliseconds
// since 1970.
type state struct {
	Request  string `json:"request"`           // its request_id
	Hash     string `json:"hash"`              // of the payload
	Accepted int64  `json:"accepted"`          // when the request was accepted
	Started  int64  `json:"started,omitempty"` // start of the first attempt, or 0
	Keep     int64  `json:"keep"`              // milliseconds for which the answer is kept
	Attempt  int    `json:"attempt,omitempty"` // number of attempts that started and were not released
	Worker   string `json:"worker,omitempty"`  // name of the running attempt
	Time     int64  `json:"time"`              // of the event
	Free     bool   `json:"free,omitempty"`    // the job has ended, and its key may be used again
	Blob     string `json:"blob,omitempty"`    // hash of the blob with the event's data, if that is long
}

// jobEvent is an event of a job.
type jobEvent struct {
	seq  uint64
	id   string // of the job
	kind string
	state
	data []byte // empty if it is in a blob that was not read
}

// keyDigits is the number of hexadecimal digits that come from the key in the id of a job. The id is a
// UUID of version 8: 12 bytes from the key, followed by the number of the job among those with this
// key. The subjects of all these jobs have the same prefix, so the last event with the prefix shows
// whether a job has the key.
const keyDigits = 24

// newID returns the id of the first job with a key. hash is the hexadecimal hash of the key.
func newID(hash string) string {
	digits := []byte(hash[:keyDigits] + "00000000")
	digits[12], digits[16] = '8', "89ab"[digits[16]%4]
	return hyphenated(string(digits))
}

// nextID returns the id of the next job with the same key.
func nextID(id string) (string, error) {
	digits := strings.ReplaceAll(id, "-", "")
	var n uint32
	if _, err := fmt.Sscanf(digits[keyDigits:], "%08x", &n); err != nil {
		return "", err
	}
	return hyphenated(fmt.Sprintf("%s%08x", digits[:keyDigits], n+1)), nil
}

// hyphenated returns the canonical form of a UUID that is given without dashes.
func hyphenated(digits string) string {
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// keySubjects matches the events of all jobs with a job's key.
func keySubjects(id string) string {
	return "esrp.job." + strings.ReplaceAll(id, "-", "")[:keyDigits] + ".>"
}

// jobPrefix returns the prefix of the subjects of a job's events.
func jobPrefix(id string) string {
	digits := strings.ReplaceAll(id, "-", "")
	return "esrp.job." + digits[:keyDigits] + "." + digits[keyDigits:] + "."
}

// idOfSubject returns the job id and the kind of an event from its subject.
func idOfSubject(subject string) (id, kind string, err error) {
	parts := strings.Split(subject, ".")
	const all = 5
	if len(parts) != all || len(parts[2]) != keyDigits || len(parts[3]) != 32-keyDigits {
		return "", "", fmt.Errorf("%q is not the subject of a job", subject)
	}
	return hyphenated(parts[2] + parts[3]), parts[4], nil
}

// parseEvent decodes an event from its message.
func parseEvent(m jet.Message) (e jobEvent, err error) {
	e.seq, e.data = m.Seq, m.Data
	if e.id, e.kind, err = idOfSubject(m.Subject); err != nil {
		return jobEvent{}, err
	}
	if err := json.Unmarshal([]byte(m.Header[headerState]), &e.state); err != nil {
		return jobEvent{}, fmt.Errorf("event %d of job %s: %w", e.seq, e.id, err)
	}
	return e, nil
}

// jobState returns the state of the job after an event.
func (e jobEvent) jobState() esrp.JobState {
	switch e.kind {
	case kindQueued:
		return esrp.JobQueued
	case kindCompleted:
		return esrp.JobSucceeded
	case kindFailed:
		return esrp.JobFailed
	case kindCancelled:
		return esrp.JobCancelled
	}
	return esrp.JobStarted
}

// final reports whether no event follows.
func (e jobEvent) final() bool { return e.jobState().Final() }

// expired reports whether the job's answer has been kept long enough.
func (e jobEvent) expired(now time.Time) bool {
	return e.final() && now.UnixMilli() > e.Time+e.Keep
}

// uuid is the job's id in the form of records.
func (e jobEvent) uuid() esrp.UUID {
	id, _ := esrp.ParseUUID(e.id) // created by newID
	return id
}

// record returns the job in the form of responses.
func (e jobEvent) record() *esrp.Job { return &esrp.Job{ID: e.uuid(), State: e.jobState()} }

func instant(ms int64) *esrp.Instant {
	t := esrp.At(time.UnixMilli(ms))
	return &t
}

// answer returns the answer to callers for the last event of a job with its data: the response of a
// job that has ended, or otherwise a response with the status accepted.
func (e jobEvent) answer() ([]byte, error) {
	if e.final() {
		return e.data, nil
	}
	id, err := esrp.ParseUUID(e.Request)
	if err != nil {
		return nil, err
	}
	out := esrp.Response{
		Version: esrp.Version, RequestID: id, Status: esrp.Accepted, Job: e.record(),
		Timing: &esrp.Timing{AcceptedAt: instant(e.Accepted)},
	}
	if e.Started != 0 {
		out.Timing.StartedAt = instant(e.Started)
	}
	return out.Value().Canonical()
}

// clientEvent returns the type and the JSON of the event for clients.
func (e jobEvent) clientEvent() (kind esrp.JobEventType, body []byte, err error) {
	data := esrp.ObjectValue()
	switch {
	case e.kind == kindQueued || e.kind == kindStarted && len(e.data) == 0:
		kind = e.jobState().Event()
	case e.kind == kindArtifact:
		kind = esrp.ArtifactCreated
		data, err = esrp.Parse(e.data)
	case !e.final():
		kind = esrp.JobProgressEvent
		data, err = esrp.Parse(e.data)
	default:
		kind = e.jobState().Event()
		data, err = endData(e)
	}
	if err != nil {
		return kind, nil, fmt.Errorf("event %d of job %s: %w", e.seq, e.id, err)
	}
	body, err = esrp.JobEvent{Type: kind, JobID: e.uuid(), Timestamp: *instant(e.Time), Data: data}.Value().Canonical()
	return kind, body, err
}

// endData returns the data of the event that ends a job, for listeners.
func endData(e jobEvent) (esrp.Value, error) {
	response, err := esrp.Parse(e.data) // not decoded, to show it unchanged
	if err != nil {
		return esrp.Value{}, err
	}
	failure, _ := response.Get("error")
	if e.kind == kindCancelled {
		reason, _ := failure.Get("message")
		return esrp.ObjectValue(esrp.Member{Key: "reason", Value: reason}), nil
	}
	data := esrp.ObjectValue(esrp.Member{Key: "response", Value: response})
	if e.kind == kindFailed {
		data.Members = append(data.Members, esrp.Member{Key: "error", Value: failure})
	}
	return data, nil
}

// progressData returns a progress message as the data of an event.
func progressData(text string) []byte {
	data, _ := Progress{Message: strings.ToValidUTF8(text, "\uFFFD")}.value().Canonical() // text always has a canonical form
	return data
}
