package service

import (
	"bytes"
	"encoding/json"
)

// The names in NATS. Workers find the server of a job by the id in the job's message.
const (
	streamName   = "ESRP_JOBS"
	consumerName = "workers"
	jobSubjects  = "esrp.jobs.>"
)

func jobSubject(server string) string         { return "esrp.jobs." + server }
func coordinatorSubject(server string) string { return "esrp.desk." + server }
func stopSubject(job string) string           { return "esrp.stop." + job }

// jobRef is a job on its way to a worker.
type jobRef struct {
	Server string `json:"server"`
	Job    string `json:"job"`
}

// The reports of a worker to the server that has the job, and the server's answers.
const (
	sayStart    = "start"    // may I run it?
	sayAlive    = "alive"    // I am running it
	sayProgress = "progress" // progress
	sayBlob     = "blob"     // a piece of a large output
	sayDone     = "done"     // the result
	sayRelease  = "release"  // I cannot continue

	hearRun   = "run"   // go on
	hearLater = "later" // another worker has it
	hearOver  = "over"  // the job has ended: no more reports are wanted
	hearAgain = "again" // the server failed; try again
)

type report struct {
	Say    string          `json:"say"`
	Job    string          `json:"job"`
	Worker string          `json:"worker"` // unique for each attempt
	Number int             `json:"number"` // of progress reports, from 1; of bytes before a piece
	Data   json.RawMessage `json:"data,omitempty"`
	Piece  []byte          `json:"piece,omitempty"`
}

type answer struct {
	Hear    string          `json:"hear"`
	Attempt int             `json:"attempt,omitempty"`
	Request json.RawMessage `json:"request,omitempty"` // to start
	LeaseMS int64           `json:"lease_ms,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// encoded encodes a message for NATS without the escapes that JSON in web pages needs: they could
// make records six times as long, and messages have a limit.
func encoded(message any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(message); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// overhead is the maximum size of a message apart from its record, in bytes.
const overhead = 4 << 10
