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

// Options of a run.
type Options struct {
	Version      string
	Timeout      time.Duration    // of one call; 0 is DefaultTimeout
	StartTimeout time.Duration    // of agent/initialize, start included; 0 is Timeout
	Jobs         int              // scenarios at the same time; 0 is 1
	Repeat       int64            // attempts of each scenario that names none; 0 is 1
	Config       map[string]any   // for agent/initialize; a scenario's own wins
	Variants     []Variant        // the whole manifest once for each; none is one without a name
	Filter       func(Case) bool  // nil is all
	Budget       Budget           // of the run
	Earlier      []Line           // of a journal: what has finished is not run again, and what it cost counts
	RetryErrors  bool             // run again what ended in an error earlier
	Record       func(Line) error // hears of each attempt that ended; nil is nobody
	Watch        func(Event)      // hears of progress, from several goroutines; nil is nobody
	Warn         func(string)     // gets each warning about agents once, from several goroutines; nil is nobody
	Keep         bool             // workspaces
	Reference    bool             // behave as the reference where we differ on purpose
	Tools        grade.Tools      // what graders use; commands are the run's own
	Judge        string           // says which judge Tools has: model, votes, server
	Servers      []string         // URLs of the same agent as the manifest's target, which share the work with it
	Client       *http.Client
	Headers      http.Header         // of requests to agents
	Supervisor   string              // see proc.NewPool
	Path         string              // PATH
	Getenv       func(string) string // variables that an environment passes on, and the user's home; nil has none
	Artifacts    string              // folder for the workspaces' diffs; empty keeps only what reports show
	Now          func() time.Time
	NewID        func() string
}

// spareSupervisors is how many supervisors wait for the next agents: few runs have more agents
// at once.
const spareSupervisors = 16

// Variant is one of several ways to run a manifest.
type Variant struct {
	Labels map[string]string // model=..., agent=...; for reports
	Target string            // empty is the manifest's
	Config map[string]any    // over Options.Config
}

// Budget bounds a run; 0 is no limit. What is reported counts: an agent that says nothing
// of tokens and costs is not bounded by them.
type Budget struct {
	Time    time.Duration
	Tokens  int64
	CostUSD float64
}

// Event is progress.
type Event struct {
	Done, Total int              // scenarios
	Scenario    *report.Scenario // that finished
	Running     string           // the one that begins, if Scenario is nil
}

// ParseTimeout reads a number of seconds: finite and above 0.
func ParseTimeout(text string) (time.Duration, error) {
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(s) || math.IsInf(s, 0) || s <= 0 {
		return 0, fmt.Errorf("it must be a number of seconds above 0, not %q", text)
	}
	return duration(s), nil
}

// duration turns seconds into a duration that does not overflow.
func duration(seconds float64) time.Duration {
	return time.Duration(min(seconds, maxSeconds) * float64(time.Second))
}

// errBudget ends what a run's budget has no room for.
var errBudget = errors.New("budget")

// errDuration is the errBudget of a run that takes too long.
var errDuration = fmt.Errorf("%w of time", errBudget)

// cause says why a context ended, as a kind of error.
func cause(ctx context.Context) string {
	if errors.Is(context.Cause(ctx), errBudget) {
		return kindBudget
	}
	return kindInterrupted
}
