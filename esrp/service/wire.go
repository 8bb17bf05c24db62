package service

import (
	"bytes"
	"encoding/json"
)

// Names in NATS. Workers find the server that has a job by the id in the job's message.
const (
	streamName   = "ESRP_JOBS"
	consumerName = "workers"
	jobSubjects  = "esrp.jobs.>"
)

func jobSubject(server string) string  { return "esrp.jobs." + server }
func deskSubject(server string) string { return "esrp.desk." + server }
func stopSubject(job string) string    { return "esrp.stop." + job }

// order is a job on its way to a worker.
type order struct {
	Server string `json:"server"`
	Job    string `json:"job"`
}

// What a worker tells the server that has the job, and what it hears.
const (
	sayStart    = "start"    // may I run it?
	sayAlive    = "alive"    // I am running it
	sayProgress = "progress" // it is so far
	sayBlob     = "blob"     // a piece of a large output
	sayDone     = "done"     // this came out
	sayRelease  = "release"  // I can not go on with it

	hearRun   = "run"   // go on
	hearLater = "later" // another worker has it, as far as known
	hearOver  = "over"  // it is over: nobody wants to hear more
	hearAgain = "again" // the server could not; try again
)

type report struct {
	Say    string          `json:"say"`
	Job    string          `json:"job"`
	Worker string          `json:"worker"` // unique for each try
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

// encoded writes a message for NATS. Records in it stay as they are: what JSON in a web page
// would need to have escaped could make them six times as long, and messages have a limit.
func encoded(message any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(message); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// overhead is what a message has around a record, at most, in bytes.
const overhead = 4 << 10
