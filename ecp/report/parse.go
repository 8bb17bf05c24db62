package report

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Parse decodes a report of any version of eca, or of the reference.
func Parse(data []byte) (*Report, error) {
	if safeio.IsUTF16(data) {
		return nil, errors.New("the text is UTF-16; save it as UTF-8")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(data, &keys); err != nil {
		return nil, fmt.Errorf("not a report: %w", err)
	}
	if keys["scenarios"] == nil || keys["total"] == nil {
		return nil, fmt.Errorf("not a report: it has no scenarios or no total")
	}
	r := &Report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("not a report: %w", err)
	}
	for i := range r.Scenarios {
		r.Scenarios[i].upgrade(r.SchemaVersion)
	}
	if r.SchemaVersion == 1 { // version 1 counted unjudged checks as failures
		r.computeTotals()
	}
	return r, nil
}

// upgrade sets fields that are missing in older reports and in those of the reference.
func (s *Scenario) upgrade(version int) {
	if version == 1 {
		s.upgradeV1()
	}
	if s.Status == "" {
		s.Status = verdictOf(s.Steps)
	}
	if s.ID == "" {
		s.ID = s.Name
	}
}

// upgradeV1 moves the status in a report of version 1 to its current field, and derives the fields
// that did not exist. It changes nothing if the verdict is already set.
func (s *Scenario) upgradeV1() {
	if s.Status != "" {
		return
	}
	s.Status = s.Outcome
	s.Outcome, s.ExitReason = outcomeV1(s.Status == Error && !onlyJudgmentFailed(s.Status, s.Errors))
	upgrade := func(steps []Step) {
		for i := range steps {
			st := &steps[i]
			st.Status = st.Outcome
			st.Outcome, st.ExitReason = outcomeV1(st.Status == Error)
		}
	}
	upgrade(s.Steps)
	for i := range s.Attempts {
		a := &s.Attempts[i]
		upgrade(a.Steps)
		if a.Status = verdictOf(a.Steps); len(a.Errors) > 0 {
			a.Status = Error
		}
		_, a.ExitReason = outcomeV1(a.Status == Error && !onlyJudgmentFailed(a.Status, a.Errors))
	}
}

// outcomeV1 returns the outcome and the exit reason for a step, attempt or scenario of version 1.
func outcomeV1(failed bool) (outcome, reason string) {
	if failed {
		return StatusFailed, ReasonError
	}
	return StatusOK, ReasonOK
}
