package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// The names in NATS. The subject of an event is its job's prefix and its kind.
const (
	streamName   = "ESRP"
	consumerName = "workers"
	bucketName   = "esrp-blobs"
	jobSubjects  = "esrp.job.*.*.*" // key, generation, kind
	waiting      = "esrp.job.*.*." + kindQueued
)

func stopSubject(id string) string { return "esrp.stop." + id }

// The kinds of events. The last event of a job is its state.
const (
	kindQueued    = "queued"    // its data is the request
	kindStarted   = "started"   // an attempt begins; without data for the first one, else what its listeners get as progress
	kindProgress  = "progress"  // data for listeners
	kindArtifact  = "artifact"  // an output was stored
	kindReleased  = "released"  // its worker gave it back; data for listeners
	kindCompleted = "completed" // these three have the response
	kindFailed    = "failed"
	kindCancelled = "cancelled"
)

// kindOf is the kind of the event that ends a job.
func kindOf(end esrp.JobState) string {
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

// state is what each event of a job says of the job. Times are milliseconds since 1970.
type state struct {
	Request  string `json:"request"`           // its request_id
	Hash     string `json:"hash"`              // of the payload
	Accepted int64  `json:"accepted"`          //
	Started  int64  `json:"started,omitempty"` // the first attempt; 0 before
	Keep     int64  `json:"keep"`              // for how many milliseconds the answer is kept
	Attempt  int    `json:"attempt,omitempty"` // attempts that began and were not given back
	Worker   string `json:"worker,omitempty"`  // unique for each attempt
	Time     int64  `json:"time"`              // of the event
	Free     bool   `json:"free,omitempty"`    // the job has ended, and its key may be used again
	Blob     string `json:"blob,omitempty"`    // has the event's data if they are long
}

// entry is an event of a job.
type entry struct {
	seq  uint64
	id   string // of the job
	kind string
	state
	data []byte // empty if they are in a blob that was not read
}

// A job's id is a UUID of version 8: 12 bytes from its key, and the number of the job among those
// with this key. The subjects of all of them have the same beginning, so that the last event under a
// key says whether a job has it.
const keyDigits = 24

// newID makes the id of a key's first job. hash is hexadecimal.
func newID(hash string) string {
	digits := []byte(hash[:keyDigits] + "00000000")
	digits[12], digits[16] = '8', "89ab"[digits[16]%4]
	return undashed(string(digits))
}

// nextID is the id of the next job with the same key.
func nextID(id string) (string, error) {
	digits := strings.ReplaceAll(id, "-", "")
	var n uint32
	if _, err := fmt.Sscanf(digits[keyDigits:], "%08x", &n); err != nil {
		return "", err
	}
	return undashed(fmt.Sprintf("%s%08x", digits[:keyDigits], n+1)), nil
}

// undashed returns the usual form of a UUID.
func undashed(digits string) string {
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

// keySubjects matches the events of all jobs with a job's key.
func keySubjects(id string) string {
	return "esrp.job." + strings.ReplaceAll(id, "-", "")[:keyDigits] + ".>"
}

// jobPrefix begins the subjects of a job's events.
func jobPrefix(id string) string {
	digits := strings.ReplaceAll(id, "-", "")
	return "esrp.job." + digits[:keyDigits] + "." + digits[keyDigits:] + "."
}

// idOfSubject is the id of the job that an event's subject belongs to, with the event's kind.
func idOfSubject(subject string) (id, kind string, err error) {
	parts := strings.Split(subject, ".")
	const all = 5
	if len(parts) != all || len(parts[2]) != keyDigits || len(parts[3]) != 32-keyDigits {
		return "", "", fmt.Errorf("%q is not the subject of a job", subject)
	}
	return undashed(parts[2] + parts[3]), parts[4], nil
}

// parseEvent reads an event from its message.
func parseEvent(m jet.Message) (e entry, err error) {
	e.seq, e.data = m.Seq, m.Data
	if e.id, e.kind, err = idOfSubject(m.Subject); err != nil {
		return entry{}, err
	}
	if err := json.Unmarshal([]byte(m.Header[headerState]), &e.state); err != nil {
		return entry{}, fmt.Errorf("event %d of job %s: %w", e.seq, e.id, err)
	}
	return e, nil
}

// jobState is the state that an event left the job in.
func (e entry) jobState() esrp.JobState {
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
func (e entry) final() bool { return e.jobState().Final() }

// expired reports whether the job's answer has been kept long enough.
func (e entry) expired(now time.Time) bool {
	return e.final() && now.UnixMilli() > e.Time+e.Keep
}

// uuid is the job's id in the form of records.
func (e entry) uuid() esrp.UUID {
	id, _ := esrp.ParseUUID(e.id) // created by newID
	return id
}

// record returns the job in the form of records.
func (e entry) record() *esrp.Job { return &esrp.Job{ID: e.uuid(), State: e.jobState()} }

func instant(ms int64) *esrp.Instant {
	t := esrp.At(time.UnixMilli(ms))
	return &t
}

// answer is the answer to callers, from the last event of a job with its data: the job's response,
// or that the job was accepted.
func (e entry) answer() ([]byte, error) {
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

// frame is the event in the form in which listeners get it.
func (e entry) frame() (kind esrp.JobEventType, body []byte, err error) {
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

// endData is what listeners get with the end of a job.
func endData(e entry) (esrp.Value, error) {
	response, err := esrp.Parse(e.data) // as a document: it is shown as it is
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

// message is a progress message in the form of events' data.
func message(text string) []byte {
	data, _ := Progress{Message: strings.ToValidUTF8(text, "\uFFFD")}.value().Canonical() // text always has a canonical form
	return data
}
