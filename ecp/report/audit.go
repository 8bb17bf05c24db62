package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/stats"
)

// Audit is the reference's record of how a run was executed: its subject, limits, duration and usage,
// without outputs and checks.
type Audit struct {
	Version    string          `json:"audit_version"`
	RunID      string          `json:"run_id"`
	StartedAt  string          `json:"started_at"`
	FinishedAt string          `json:"finished_at"`
	DurationMS float64         `json:"duration_ms"`
	ExitReason string          `json:"exit_reason"`
	Runtime    AuditRuntime    `json:"runtime"`
	Manifest   AuditManifest   `json:"manifest"`
	Agent      *Agent          `json:"agent"`
	Limits     Limits          `json:"limits"`
	Totals     AuditTotals     `json:"totals"`
	Latency    Latency         `json:"latency"`
	Usage      ecp.Usage       `json:"usage"` // null if no step reported any
	Scenarios  []AuditScenario `json:"scenarios"`
}

// AuditRuntime describes the runtime and its platform.
type AuditRuntime struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
}

// AuditManifest describes the evaluated manifest.
type AuditManifest struct {
	Path   string  `json:"path"`
	Name   string  `json:"name"`
	Digest *string `json:"digest"` // of the file, sha256:HEX
	Target string  `json:"target"`
}

// Limits are the time limits of a run, in seconds; null means no limit.
type Limits struct {
	RPCTimeout  float64  `json:"rpc_timeout_s"`
	MaxDuration *float64 `json:"max_duration_s"`
}

// AuditTotals counts scenarios, steps and checks.
type AuditTotals struct {
	Scenarios     int `json:"scenarios"`
	StepsPlanned  int `json:"steps_planned"`
	StepsExecuted int `json:"steps_executed"`
	StepsFailed   int `json:"steps_failed"`
	StepsSkipped  int `json:"steps_skipped"`
	ChecksPassed  int `json:"checks_passed"`
	ChecksTotal   int `json:"checks_total"`
	ChecksFailed  int `json:"checks_failed"`
}

// Latency summarizes the durations of the executed steps, in milliseconds.
type Latency struct {
	Total float64 `json:"total_ms"`
	Mean  float64 `json:"mean_ms"`
	Max   float64 `json:"max_ms"`
	P95   float64 `json:"p95_ms"`
}

// AuditScenario is one scenario.
type AuditScenario struct {
	Name       string      `json:"name"`
	Status     string      `json:"status"`
	ExitReason string      `json:"exit_reason"`
	DurationMS float64     `json:"duration_ms"`
	Steps      []AuditStep `json:"steps"`
}

// AuditStep is one step.
type AuditStep struct {
	Index        int       `json:"index"` // from 1
	Input        string    `json:"input"`
	Status       string    `json:"status"`
	ExitReason   string    `json:"exit_reason"`
	DurationMS   float64   `json:"duration_ms"`
	Usage        ecp.Usage `json:"usage"`
	ToolCalls    int       `json:"tool_calls"`
	ChecksPassed int       `json:"checks_passed"`
	ChecksTotal  int       `json:"checks_total"`
	Error        *Message  `json:"error"`
}

// auditTime is the format of times in an audit record.
const auditTime = "2006-01-02T15:04:05.000Z"

// SetAudit sets the audit record of a complete report. digest is that of the manifest's file, or
// empty.
func (r *Report) SetAudit(digest string, limits Limits, took time.Duration) {
	a := &Audit{
		Version: "1", RunID: r.RunID, StartedAt: r.StartedAt.UTC().Format(auditTime), FinishedAt: r.StartedAt.Add(took).UTC().Format(auditTime),
		DurationMS: roundMillis(float64(took) / float64(time.Millisecond)), ExitReason: r.ExitReason,
		Runtime:  AuditRuntime{Name: r.Runtime.Name, Version: r.Runtime.Version, Platform: runtime.GOOS},
		Manifest: AuditManifest{Path: r.Manifest, Name: r.Name, Target: r.Target}, Agent: r.Agent, Limits: limits,
		Totals:    AuditTotals{Scenarios: len(r.Scenarios), ChecksPassed: r.Passed, ChecksTotal: r.Total, ChecksFailed: r.Failed},
		Scenarios: []AuditScenario{},
	}
	if digest != "" {
		a.Manifest.Digest = &digest
	}
	if a.Agent == nil {
		a.Agent = &Agent{}
	}
	var durations []float64
	for i := range r.Scenarios {
		a.Scenarios = append(a.Scenarios, a.addScenario(&r.Scenarios[i], &durations))
	}
	a.Latency = latency(durations)
	r.Audit = a
}

func (a *Audit) addScenario(s *Scenario, durations *[]float64) AuditScenario {
	out := AuditScenario{Name: s.Name, Status: s.Outcome, ExitReason: s.ExitReason, Steps: []AuditStep{}}
	var sum float64
	for i, st := range s.Steps {
		a.Totals.StepsPlanned++
		switch st.Outcome {
		case StatusOK:
			a.Totals.StepsExecuted++
			if s.Cached == 0 {
				*durations = append(*durations, st.DurationMS)
			}
			a.Usage = addUsage(a.Usage, st.Usage)
		case StatusSkipped:
			a.Totals.StepsSkipped++
		default:
			a.Totals.StepsFailed++
		}
		var counted Report
		counted.addSteps([]Step{st})
		sum += st.DurationMS
		out.Steps = append(out.Steps, AuditStep{
			Index: i + 1, Input: st.Input, Status: st.Outcome, ExitReason: st.ExitReason, DurationMS: roundMillis(st.DurationMS), Usage: st.Usage,
			ToolCalls: len(st.ToolCalls), ChecksPassed: counted.Passed, ChecksTotal: counted.Total, Error: st.Error,
		})
	}
	out.DurationMS = roundMillis(sum)
	return out
}

// addUsage adds the usage of a step. If the step reports no total, it uses the sum of input and
// output.
func addUsage(sum, step ecp.Usage) ecp.Usage {
	counts := map[string]int64{}
	for _, key := range []string{ecp.TokensInput, ecp.TokensOutput} {
		if n, ok := step.Tokens(key); ok {
			counts[key] = n
		}
	}
	if n, ok := step.Tokens(ecp.TokensTotal); ok {
		counts[ecp.TokensTotal] = n
	} else if len(counts) > 0 {
		counts[ecp.TokensTotal] = ecp.AddTokens(counts[ecp.TokensInput], counts[ecp.TokensOutput])
	}
	if len(counts) == 0 {
		return sum
	}
	for key := range counts {
		counts[key] = ecp.AddTokens(counts[key], sum.Count(key))
	}
	for key := range sum {
		if _, ok := counts[key]; !ok {
			counts[key] = sum.Count(key)
		}
	}
	return ecp.NewUsage(counts)
}

// latency summarizes durations. The 95th percentile is by nearest rank.
func latency(durations []float64) (l Latency) {
	if len(durations) == 0 {
		return l
	}
	for _, ms := range durations {
		l.Total += ms
	}
	return Latency{Total: roundMillis(l.Total), Mean: roundMillis(l.Total / float64(len(durations))), Max: roundMillis(stats.Percentile(durations, 1)), P95: roundMillis(stats.Percentile(durations, 0.95))}
}

// roundMillis rounds to three decimals.
func roundMillis(ms float64) float64 { return math.Round(ms*1000) / 1000 }

// MarshalJSON writes an unknown agent as an empty object.
func (a Agent) MarshalJSON() ([]byte, error) {
	if a.Name == "" {
		return []byte("{}"), nil
	}
	type plain Agent
	return json.Marshal(plain(a))
}

// AuditJSON writes the audit record alone.
func (r *Report) AuditJSON(w io.Writer) error {
	if r.Audit == nil {
		return fmt.Errorf("the report has no audit record")
	}
	return writeJSON(w, r.Audit)
}
