// Package report defines the results of an evaluation (ECP, reports), and the formats that show them.
//
// It owns the JSON of reports, which is that of the reference (the ECP project's own runtime) with
// additional keys, and what is derived from it: HTML, JUnit, Markdown, annotations, comparisons and trends.
//
// Guarantees: an agent's output is escaped wherever it is shown; the JSON is ASCII; every version
// can read the reports of earlier ones. It starts no processes and reads no clock.
package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
)

// SchemaVersion is the version of the keys that eca adds to the reference's reports. In version 1,
// the key status held what is now verdict (scenarios, attempts) or agent_status (steps). Up to
// version 2, the id of a scenario was its position in the manifest.
const SchemaVersion = 3

// firstKeyedVersion is the first version in which scenarios have stable ids.
const firstKeyedVersion = 3

// Verdicts of scenarios, attempts and steps. Error means that it is unknown whether the agent would
// have passed.
const (
	Passed = "passed"
	Failed = "failed"
	Error  = "error"
)

// Status of steps and scenarios, as in the reference: whether they were executed, not whether their
// checks passed.
const (
	StatusOK      = "ok"
	StatusFailed  = "failed"
	StatusSkipped = "skipped" // steps only
)

// Exit reasons of steps, scenarios and runs, as in the reference. Failed checks and failed judges
// do not change them.
const (
	ReasonOK        = "ok"
	ReasonTimeout   = "timeout"
	ReasonTransport = "transport_error"
	ReasonProtocol  = "protocol_error"
	ReasonAgent     = "agent_error"
	ReasonDuration  = "max_duration_exceeded"
	ReasonSkipped   = "skipped" // steps only
	ReasonError     = "error"
)

// Report is the JSON form of a run. The fields Manifest to Scenarios are the reference's. Passed, Total
// and Failed count the checks of all attempts, except those that could not be judged. It has more
// than 25 fields because each is a key of the report.
type Report struct {
	Manifest string `json:"manifest"`
	Passed   int    `json:"passed"`
	Total    int    `json:"total"`
	Failed   int    `json:"failed"`
	// ExitReason is that of the first scenario whose execution failed. The time limit of the run, or an
	// agent that cannot be evaluated at all, takes precedence.
	ExitReason string     `json:"exit_reason"`
	Scenarios  []Scenario `json:"scenarios"`
	Audit      *Audit     `json:"audit,omitempty"`

	SchemaVersion int       `json:"schema_version"`
	RunID         string    `json:"run_id"`
	StartedAt     time.Time `json:"started_at"`
	DurationMS    int64     `json:"duration_ms"`
	Name          string    `json:"name"`
	Target        string    `json:"target"`
	Status        string    `json:"status"`
	Counts        Counts    `json:"counts"`
	Runtime       Runtime   `json:"runtime"`
	Agent         *Agent    `json:"agent"` // its self-description in the first scenario that has one; may be null
	Errors        []Problem `json:"errors"`
	Warnings      []string  `json:"warnings,omitempty"` // about agents, without repetitions
	Usage         Tokens    `json:"usage"`
	CostUSD       *float64  `json:"cost_usd"`          // null if no agent reported it
	NotRun        int       `json:"not_run,omitempty"` // planned cases without a result
	// Interrupted means that scenarios are missing because the run was stopped.
	Interrupted bool        `json:"interrupted,omitempty"`
	Summary     *Summary    `json:"summary,omitempty"`
	Variants    []Variant   `json:"variants,omitempty"`    // of the matrix
	Comparisons []Pair      `json:"comparisons,omitempty"` // each further variant compared with the first one
	Baseline    *Comparison `json:"baseline,omitempty"`

	Omitted *Omitted `json:"-"` // nil if Scenarios has all results
}

// MaxListed limits how many results a report lists if it does not have all: those that did not pass.
const MaxListed = 1000

// Omitted counts what a report has only in its sums, because its results are in a run file.
type Omitted struct {
	NotPassed      int // results
	Reused, Cached int // attempts
}

// Counts counts scenarios.
type Counts struct {
	Passed int `json:"passed"`
	Failed int `json:"failed"`
	Error  int `json:"error"`
}

// Runtime describes the evaluating program.
type Runtime struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Compat  string `json:"compat,omitempty"`
}

// Agent describes the evaluated agent.
type Agent struct {
	Name            string           `json:"name"`
	Version         string           `json:"version,omitempty"`          // if it reports one
	ProtocolVersion string           `json:"protocol_version,omitempty"` // the negotiated version
	Capabilities    ecp.Capabilities `json:"capabilities"`
}

// Tokens sums up the reported tokens.
type Tokens struct {
	InputTokens      int64 `json:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	CacheReadTokens  int64 `json:"cache_read_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"`
}

func (t *Tokens) add(u ecp.Usage) {
	for key, sum := range map[string]*int64{
		ecp.TokensInput: &t.InputTokens, ecp.TokensOutput: &t.OutputTokens, ecp.TokensCacheRead: &t.CacheReadTokens,
		ecp.TokensCacheWrite: &t.CacheWriteTokens, ecp.TokensReasoning: &t.ReasoningTokens,
	} {
		*sum = ecp.AddTokens(*sum, u.Count(key))
	}
}

// Problem is an error of the agent, the judge or the runtime.
type Problem struct {
	Scenario string `json:"scenario,omitempty"`
	Step     int    `json:"step,omitempty"` // from 1; 0 outside steps
	Kind     string `json:"kind"`           // start, timeout, exit, protocol, version, capability, rpc, http, judge, grader, workspace, environment, budget, interrupted
	Message  string `json:"message"`
	Stderr   string `json:"stderr,omitempty"` // the end of the agent's stderr
}

// Scenario is the result of a scenario with all its attempts. Steps are those of the first attempt
// that did not pass, or of the first attempt if all passed.
type Scenario struct {
	Name       string             `json:"name"`
	Steps      []Step             `json:"steps"`
	Outcome    string             `json:"status"` // ok or failed
	ExitReason string             `json:"exit_reason"`
	ID         string             `json:"id"`                    // independent of the scenario's position in the manifest
	Aliases    []string           `json:"aliases,omitempty"`     // ids that it had earlier
	Group      string             `json:"scenario_id,omitempty"` // id of the manifest's scenario, equal for all records of its dataset
	VariantKey string             `json:"variant_key,omitempty"` // identifies the agent and its configuration
	Status     string             `json:"verdict"`               // Passed, Failed or Error
	DurationMS int64              `json:"duration_ms"`
	Line       int                `json:"line,omitempty"`
	Variant    map[string]string  `json:"variant,omitempty"` // of the matrix
	Record     map[string]string  `json:"record,omitempty"`  // of the dataset
	Agent      *Agent             `json:"agent,omitempty"`
	Errors     []Problem          `json:"errors"`
	Notes      []string           `json:"notes,omitempty"` // remarks that are not errors
	Attempts   []Attempt          `json:"attempts,omitempty"`
	Repeat     *Repeat            `json:"repeat,omitempty"`
	PassAtK    map[string]float64 `json:"pass_at_k,omitempty"`
	Workspace  string             `json:"workspace,omitempty"` // if it was kept
	Diff       string             `json:"diff,omitempty"`      // the agent's changes to its workspace in git's format, possibly cut
	DiffFile   string             `json:"diff_file,omitempty"` // file with the complete diff
	Reused     int                `json:"reused,omitempty"`    // attempts from an earlier run
	Cached     int                `json:"cached,omitempty"`    // attempts among Reused that come from the cache, with zero time and cost
}

// Attempt is one run of a scenario.
type Attempt struct {
	Status     string    `json:"verdict"`
	ExitReason string    `json:"exit_reason"`
	DurationMS int64     `json:"duration_ms"`
	Steps      []Step    `json:"steps"`
	Errors     []Problem `json:"errors"`
	Notes      []string  `json:"notes,omitempty"`
	Agent      *Agent    `json:"agent,omitempty"`
	Workspace  string    `json:"workspace,omitempty"`
	Diff       string    `json:"diff,omitempty"`
	DiffFile   string    `json:"diff_file,omitempty"`
	Cached     bool      `json:"cached,omitempty"` // taken from the cache
}

// Repeat summarizes the attempts of a scenario. Attempts that ended in an error count as not passed,
// unless only the judgment is missing: those are left out.
type Repeat struct {
	N        int                `json:"n"`
	Passed   int                `json:"passed"`
	PassRate float64            `json:"pass_rate"`
	CI95     [2]float64         `json:"ci95"`       // Wilson's interval of the pass rate
	PassAllK map[string]float64 `json:"pass_all_k"` // the probability that each of k attempts passes
}

// Step is one message and its result. The fields Input to Checks are the reference's.
type Step struct {
	Input             string         `json:"input"`
	Output            *string        `json:"output"`
	EvaluationContext *string        `json:"evaluation_context"`
	ToolCalls         []ecp.ToolCall `json:"tool_calls"` // never null
	Logs              *string        `json:"logs"`
	Checks            []Check        `json:"checks"`

	Outcome    string      `json:"status"` // ok, failed or skipped
	ExitReason string      `json:"exit_reason"`
	DurationMS float64     `json:"duration_ms"` // 0 for skipped
	Usage      ecp.Usage   `json:"usage"`       // as the agent sent it
	CostUSD    *float64    `json:"cost_usd,omitempty"`
	Timing     *ecp.Timing `json:"timing,omitempty"`
	Model      string      `json:"model,omitempty"`
	StopReason string      `json:"stop_reason,omitempty"`
	Error      *Message    `json:"error"` // null if the step was executed

	Status  string                     `json:"agent_status"`    // done or paused, as the agent reported; error if it was not executed
	Verdict string                     `json:"verdict"`         // Passed, Failed or Error
	Extra   map[string]json.RawMessage `json:"extra,omitempty"` // further keys of the agent
}

// Message is the text of an error. Reports of version 1 have an object in its place, which is accepted.
type Message string

// UnmarshalJSON implements json.Unmarshaler.
func (m *Message) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err == nil {
		*m = Message(text)
		return nil
	}
	var p Problem
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	*m = Message(p.Message)
	return nil
}

// Execution is the type of the only check of a step that was not executed.
const Execution = "execution"

// NotExecuted marks a step as not executed. With asFailure, its check counts as failed, as in the
// reference; otherwise the check is an error.
func (s *Step) NotExecuted(outcome, reason, message string, asFailure bool) {
	text := Message(message)
	s.Outcome, s.ExitReason, s.Error, s.Status, s.Verdict = outcome, reason, &text, Error, Error
	check := Check{Type: Execution, Field: "agent", Reasoning: message}
	if outcome == StatusFailed {
		check.Reasoning = reason + ": " + message
	}
	if !asFailure {
		check.Error = message
	}
	s.Checks = []Check{check}
}

// Check is the result of a grader. The fields Type to Reasoning are the reference's.
type Check struct {
	Type      string  `json:"type"`
	Field     string  `json:"field"`
	Passed    bool    `json:"passed"`
	Score     float64 `json:"score"`
	Reasoning string  `json:"reasoning"`

	Error  string `json:"error,omitempty"` // why it could not be judged
	Votes  []Vote `json:"votes,omitempty"`
	Cached bool   `json:"cached,omitempty"` // the judge's answers come from the cache
}

// Vote is one answer of a judge.
type Vote struct {
	Passed    bool    `json:"passed"`
	Score     float64 `json:"score"`
	Reasoning string  `json:"reasoning"`
	Error     string  `json:"error,omitempty"`
}

// JSON writes a report in the reference's format: ASCII, indented by two spaces.
func (r *Report) JSON(w io.Writer) error { return writeJSON(w, r) }

func writeJSON(w io.Writer, v any) error {
	line, err := ecp.Encode(v)
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, line, "", "  "); err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// verdictOf derives a verdict from checks, for reports that have none.
func verdictOf(steps []Step) string {
	verdict := Passed
	for _, st := range steps {
		for _, c := range st.Checks {
			switch {
			case !c.Passed && (c.Type == Execution || c.Error != ""):
				return Error
			case !c.Passed:
				verdict = Failed
			}
		}
	}
	return verdict
}

// Kinds of problems with a judgment.
const (
	KindJudge  = "judge"
	KindGrader = "grader"
)

// onlyJudgmentFailed reports whether only the judgment is missing: all problems are of the judge or a grader.
func onlyJudgmentFailed(status string, problems []Problem) bool {
	return status == Error && len(problems) > 0 && !slices.ContainsFunc(problems, func(p Problem) bool { return p.Kind != KindJudge && p.Kind != KindGrader })
}

// Sum computes the fields that are derived from the scenarios: counts, usage, cost, errors, status,
// statistics, variants and their comparisons.
func (r *Report) Sum() {
	r.computeTotals().setStatistics(r)
	r.Comparisons = compareVariants(r.Sides())
}

// computeTotals computes counts, usage, cost, errors and status.
func (r *Report) computeTotals() *Tally {
	t := NewTally()
	r.Errors = []Problem{}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		t.Add(s.VariantName(), s.Variant, s.Sums(i))
		r.Errors = append(r.Errors, s.Errors...)
		if r.Agent == nil {
			r.Agent = s.Agent
		}
	}
	t.setSums(r)
	return t
}

// Cached counts the attempts from the cache.
func (r *Report) Cached() (n int) {
	if r.Omitted != nil {
		return r.Omitted.Cached
	}
	for i := range r.Scenarios {
		n += r.Scenarios[i].Cached
	}
	return n
}

// Reused counts the attempts from an earlier run.
func (r *Report) Reused() (n int) {
	if r.Omitted != nil {
		return r.Omitted.Reused
	}
	for i := range r.Scenarios {
		n += r.Scenarios[i].Reused
	}
	return n
}

// setStatus sets the status from the counts.
func (r *Report) setStatus() {
	r.Failed = r.Total - r.Passed
	switch {
	case r.Counts.Error > 0 || r.Interrupted || r.NotRun > 0:
		r.Status = Error
	case r.Counts.Failed > 0:
		r.Status = Failed
	default:
		r.Status = Passed
	}
}

func (r *Report) addSteps(steps []Step) {
	for _, st := range steps {
		for _, c := range st.Checks {
			if c.Error != "" { // unknown whether it would have passed
				continue
			}
			r.Total++
			if c.Passed {
				r.Passed++
			}
		}
		r.Usage.add(st.Usage)
		r.CostUSD = addCost(r.CostUSD, st.CostUSD)
	}
}

// Spent returns the tokens and the cost that the agent reported for an attempt. The cost is nil if it
// reported none.
func (a Attempt) Spent() (tokens int64, cost *float64) {
	for _, st := range a.Steps {
		u := st.Usage
		tokens = ecp.AddTokens(tokens, u.Count(ecp.TokensInput), u.Count(ecp.TokensOutput), u.Count(ecp.TokensCacheRead), u.Count(ecp.TokensCacheWrite))
		if st.CostUSD != nil {
			positive := max(*st.CostUSD, 0)
			cost = addCost(cost, &positive)
		}
	}
	return tokens, cost
}

// addCost adds costs, which are nil if they are unknown.
func addCost(sum, more *float64) *float64 {
	if sum == nil || more == nil {
		return cmp.Or(sum, more)
	}
	total := *sum + *more
	return &total
}
