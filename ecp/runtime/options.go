package runtime

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// DefaultTimeout bounds one call of an agent, as in the reference.
const DefaultTimeout = 30 * time.Second

// Options of a run: most are flags of ecp run. It has more than 25 fields because each flag sets one.
type Options struct {
	Version      string
	Timeout      time.Duration    // of one call; 0 is DefaultTimeout
	StartTimeout time.Duration    // of agent/initialize, including the start; 0 is Timeout
	Jobs         int              // concurrent scenarios; 0 is 1
	Scheduler    Scheduler        // runs the attempts; nil runs Jobs at a time in this process
	Repeat       int64            // attempts of each scenario without its own number; 0 is 1
	Config       map[string]any   // for agent/initialize; a scenario's config takes precedence
	Variants     []Variant        // the whole manifest runs once for each; none is one without a name
	Filter       func(Case) bool  // nil is all
	Budget       Budget           // of the run
	Earlier      []Line           // of a journal: finished attempts are not run again, and their cost counts
	RetryErrors  bool             // run attempts again that ended in an error earlier
	Record       func(Line) error // gets each attempt that ended; may be nil
	Cache        Cache            // of attempts; may be nil
	Watch        func(Event)      // gets progress, from several goroutines; may be nil
	Warn         func(string)     // gets each warning about agents once, from several goroutines; may be nil
	Keep         bool             // keep the workspaces
	Reference    bool             // behave like the reference where we differ on purpose
	Tools        grade.Tools      // for graders; commands are the run's own
	Judge        string           // describes the judge in Tools: model, votes, server
	Servers      []string         // URLs of the same agent as the manifest's target, which share the work
	Client       *http.Client
	Headers      http.Header         // of requests to agents
	Supervisor   string              // see proc.NewPool
	Path         string              // PATH
	Getenv       func(string) string // variables that an environment passes on, and the user's home; may be nil
	Artifacts    string              // folder for the workspaces' diffs; empty keeps only what reports show
	Now          func() time.Time
	NewID        func() string
}

// spareSupervisors is how many supervisors wait for the next agents. Few runs have more agents at
// the same time.
const spareSupervisors = 16

// Variant is one of several ways to run a manifest.
type Variant struct {
	Labels map[string]string // model=..., agent=...; for reports
	Target string            // empty is the manifest's
	Config map[string]any    // over Options.Config
}

// Budget bounds a run; 0 is unlimited. Only reported usage counts: the budget does not bound an
// agent that reports no tokens and costs.
type Budget struct {
	Time    time.Duration
	Tokens  int64
	CostUSD float64
}

// Event reports progress.
type Event struct {
	Done, Total int              // scenarios
	Scenario    *report.Scenario // the one that finished
	Running     string           // the one that begins, if Scenario is nil
}

// ParseTimeout reads a time above 0: a number of seconds, or one with units (90s, 10m).
func ParseTimeout(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || math.IsInf(s, 0) || s <= 0 {
		return 0, fmt.Errorf("it must be a number of seconds above 0, or a time such as 90s or 10m, not %q", text)
	}
	return duration(s), nil
}

// duration turns seconds into a duration that does not overflow.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// errBudget ends attempts that exceed a run's budget.
var errBudget = errors.New("budget")

// errDuration is the errBudget of a run that takes too long.
var errDuration = fmt.Errorf("%w of time", errBudget)

// OverBudget reports whether the context of a Scheduler ended because the run's budget is used up.
func OverBudget(ctx context.Context) bool { return ctx.Err() != nil && cause(ctx) == kindBudget }

// cause returns why a context ended, as a kind of error.
func cause(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errBudget) {
		return kindBudget
	}
	return kindInterrupted
}
