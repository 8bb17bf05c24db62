package runtime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// DefaultTimeout is the default time limit of one call, as in the reference.
const DefaultTimeout = 30 * time.Second

// Options configure a run. It has more than 25 fields because each flag of ecp run sets one.
type Options struct {
	Version      string
	Timeout      time.Duration   // of one call; 0 is DefaultTimeout
	StartTimeout time.Duration   // of agent/initialize, including the agent's start; 0 is Timeout
	Jobs         int             // concurrent scenarios; 0 is 1
	Scheduler    Scheduler       // runs the attempts; nil runs Jobs at a time in this process
	Repeat       int64           // attempts of each scenario without its own number; 0 is 1
	Config       map[string]any  // for agent/initialize; a scenario's config takes precedence
	Variants     []Variant       // the manifest is run once for each; empty is one variant without labels
	Filter       func(Case) bool // selects cases; nil selects all
	Budget       Budget          // of the run
	Store        Store           // of attempts and results; may be nil
	StoreOnly    bool            // do not keep results in memory; the report lists only those that did not pass
	Cache        Cache           // of attempts; may be nil
	Watch        func(Event)     // is called with progress, from several goroutines; may be nil
	Warn         func(string)    // is called once with each warning about agents, from several goroutines; may be nil
	Keep         bool            // keep the workspaces
	Reference    bool            // behave like the reference, also where eca differs on purpose
	Tools        grade.Tools     // for graders; the run sets Command
	Judge        string          // describes the judge in Tools: model, votes, server
	Servers      []string        // more URLs of the agent that is the manifest's target, to share the work
	Client       *http.Client
	Headers      http.Header         // for requests to agents
	Supervisor   string              // see proc.NewPool
	Path         string              // PATH
	Getenv       func(string) string // reads HOME, and variables that an environment grants; may be nil
	Artifacts    string              // folder for the full diffs of the workspaces; empty writes none
	Now          func() time.Time
	NewID        func() string
}

// spareSupervisors is the number of supervisors that are started in advance. Few runs have more
// agents at the same time.
const spareSupervisors = 16

// Variant is one of several ways to run a manifest.
type Variant struct {
	Labels map[string]string // model=..., agent=...; for reports
	Target string            // empty is the manifest's
	Config map[string]any    // takes precedence over Options.Config
}

// Budget limits a run; 0 is unlimited. Tokens and costs are those that agents report, so they do not
// limit an agent that reports none.
type Budget struct {
	Time    time.Duration
	Tokens  int64
	CostUSD float64
}

// Event reports progress: exactly one of Scenario, Running and Ready is set.
type Event struct {
	Done, Total int              // scenarios
	Scenario    *report.Scenario // that finished, or nil
	Running     string           // name of the scenario that begins
	Ready       bool             // an agent has answered agent/initialize
}

// duration converts seconds to a duration, limited to maxSeconds.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// errBudget is the cause of ending a run whose budget is used up.
var errBudget = errors.New("budget")

// errDuration is the errBudget of a run that exceeded Budget.Time.
var errDuration = fmt.Errorf("%w of time", errBudget)

// OverBudget reports whether the context of a Scheduler ended because the run's budget is used up.
func OverBudget(ctx context.Context) bool { return ctx.Err() != nil && stopKind(ctx) == kindBudget }

// stopKind returns why a context ended, as a kind of error.
func stopKind(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errBudget) {
		return kindBudget
	}
	return kindInterrupted
}
