package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// workMessage is the message for an attempt: a position in the plan of a run. It contains no command.
type workMessage struct {
	V     int              `json:"v"`
	Run   string           `json:"run"`
	Key   attemptKey       `json:"key"`
	Place runtime.Position `json:"place"`
	Name  string           `json:"name"` // of the scenario, for human readers
}

// Headers of results.
const (
	headerStatus = "Ecp-Status"
	headerCost   = "Ecp-Cost"
)

// result is the result of an attempt.
type result struct {
	V          int             `json:"v"`
	Worker     string          `json:"worker"`
	Deliveries uint64          `json:"deliveries"`
	Attempt    *report.Attempt `json:"attempt,omitempty"`
	Blob       string          `json:"blob,omitempty"` // has the attempt if it is long
	Diff       string          `json:"diff,omitempty"` // blob with the agent's changes
}

// maxInline is the size up to which an attempt is part of the result message, in bytes.
const maxInline = 128 << 10

// message returns the message for a result.
func (r result) message(subject string, a *report.Attempt) (jet.Message, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return jet.Message{}, err
	}
	cost := 0.0
	for _, st := range a.Steps {
		if st.CostUSD != nil {
			cost += max(*st.CostUSD, 0)
		}
	}
	return jet.Message{Subject: subject, Data: raw, Header: map[string]string{headerStatus: a.Status, headerCost: strconv.FormatFloat(cost, 'g', -1, 64)}}, nil
}

// decodeAttempt returns the attempt of a result, and the name of the blob with its diff. If the attempt
// cannot be read, it returns one with an error.
func (c *Cluster) decodeAttempt(ctx context.Context, raw []byte) (report.Attempt, string) {
	var r result
	err := json.Unmarshal(raw, &r)
	if err == nil && r.Attempt == nil && r.Blob != "" {
		var whole []byte
		if whole, err = c.readBlob(ctx, r.Blob); err == nil {
			err = json.Unmarshal(whole, &r.Attempt)
		}
	}
	if err == nil && r.Attempt == nil {
		err = fmt.Errorf("the result (version %d) contains no attempt", r.V)
	}
	if err != nil {
		return failedAttempt("storage", "cannot read the result: "+err.Error()), ""
	}
	return *r.Attempt, r.Diff
}

// failedAttempt returns an attempt that failed before its first step.
func failedAttempt(kind, message string) report.Attempt {
	return report.Attempt{
		Status: report.Error, ExitReason: report.ReasonError, Steps: []report.Step{},
		Errors: []report.Problem{{Kind: kind, Message: message}},
	}
}
