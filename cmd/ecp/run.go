package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const runHelp = `Runs the scenarios of a manifest against its agent and grades each step.

Exit codes: 0 all passed; 2 checks failed, or wrong usage; 1 an error in a scenario, a judge, the manifest
or a file, or nothing was checked (1 takes precedence over 2); 130 interrupted.`

// runFlags are the flags of ecp run. It has more than 25 fields because each flag is one.
type runFlags struct {
	manifest                                string
	verbose, noVerbose, json, watch, keep   bool
	failOnError, noFailOnError, retryErrors bool
	failOnRegression                        bool
	html, jsonOut, junit, markdown, runFile string
	auditOut, export, artifacts             string
	timeout, maxTime, maxDuration           string
	jobs                                    int
	repeat, maxTokens, votes                int64
	resume, reuseFrom                       string
	rerunFailed, baseline                   string
	cache                                   string
	noCache                                 bool
	compat, filter, judge                   string
	targets, config, matrix, headers        []string
	maxCost, minPassRate                    float64
	maxNewFail                              int
	baselineReport                          *report.Report // the baseline, once it is read
}

func runCommand(s streams) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run MANIFEST",
		Short: "Evaluate an agent",
		Long:  runHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return usage.New(err)
			}
			if f.watch {
				return watchRuns(cmd.Context(), f, s)
			}
			return evaluate(cmd.Context(), f, s)
		},
	}
	flags := cmd.Flags()
	manifestFlag(cmd, &f.manifest)
	f.settingsFlags(flags)
	f.reportFlags(flags)
	flags.IntVarP(&f.jobs, "jobs", "j", 1, "scenarios at the same time")
	flags.StringVar(&f.resume, "resume", "", "continue the run of a run file: finished attempts are not repeated")
	flags.StringVar(&f.reuseFrom, "reuse-from", "", "start a new run (needs --run-file) that reuses the results of this run file that still apply")
	flags.StringVar(&f.cache, "cache", os.Getenv(cacheVariable), "folder that caches answers of agents and judges (default: $ECP_CACHE)")
	flags.BoolVar(&f.noCache, "no-cache", false, "use no cache, even if $ECP_CACHE is set")
	flags.BoolVar(&f.retryErrors, "retry-errors", false, "with --resume or --reuse-from, repeat attempts that ended in an error")
	flags.StringVar(&f.rerunFailed, "rerun-failed", "", "run only the cases that did not pass in this JSON report")
	flags.StringArrayVar(&f.headers, "header", nil, "NAME: VALUE for requests to agents behind HTTP (repeatable)")
	flags.BoolVar(&f.keep, "keep-workspaces", false, "do not delete the folders that agents worked in")
	flags.BoolVar(&f.watch, "watch", false, "run again whenever the manifest or a file beside it changes")
	flags.StringVar(&f.compat, "compat", "", "reference: behave like the reference where ecp intentionally differs")
	return cmd
}

// settingsFlags adds the flags that determine how scenarios are run.
func (f *runFlags) settingsFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.timeout, "timeout", "", "seconds that one call of the agent may take (default: $ECP_RPC_TIMEOUT, else 30)")
	flags.Int64Var(&f.repeat, "repeat", 1, "attempts of each scenario")
	flags.StringVar(&f.filter, "filter", "", "run only scenarios whose name matches this regular expression")
	flags.StringArrayVar(&f.targets, "target", nil, "evaluate this agent instead of the manifest's; several URLs: servers of the same agent, which share the work (repeatable)")
	flags.StringArrayVar(&f.config, "config", nil, "KEY=VALUE for agent/initialize; VALUE may be JSON, KEY may have dots (repeatable)")
	flags.StringArrayVar(&f.matrix, "matrix", nil, "KEY=A,B,...: run everything once for each value of a key of config, or of target (repeatable)")
	flags.StringVar(&f.maxTime, "max-time", "", "time limit of the whole run: seconds, or with a unit (10m)")
	flags.StringVar(&f.maxDuration, "max-duration", "", "the reference's name for --max-time (default: $ECP_MAX_DURATION)")
	flags.Int64Var(&f.maxTokens, "max-tokens", 0, "tokens that agents may use in the whole run")
	flags.Float64Var(&f.maxCost, "max-cost", 0, "US dollars that agents may spend in the whole run")
	flags.StringVar(&f.judge, "judge-model", "", "model of llm_judge: provider/name as in eca, or the name of an OpenAI model (default: $ECP_LLM_JUDGE_MODEL)")
	flags.Int64Var(&f.votes, "judge-votes", 1, "how often a judge is asked; the majority decides")
}

// reportFlags adds the flags for progress and reports.
func (f *runFlags) reportFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.verbose, "verbose", false, "print more details on stderr")
	flags.BoolVar(&f.noVerbose, "no-verbose", false, "turn off --verbose")
	flags.StringVar(&f.html, "report", "", "write an HTML report: a single file that needs no network")
	flags.StringVar(&f.runFile, "run-file", "", "write each result to this file immediately; ecp view shows it, and --resume continues its run")
	flags.StringVar(&f.jsonOut, "json-out", "", "write the JSON report to a file")
	flags.BoolVar(&f.json, "json", false, "write the JSON report to stdout, and nothing else")
	flags.StringVar(&f.junit, "junit", "", "write a JUnit report")
	flags.StringVar(&f.markdown, "markdown", "", "write a summary in Markdown")
	flags.BoolVar(&f.failOnError, "fail-on-error", true, "exit with 2 if checks failed")
	flags.BoolVar(&f.noFailOnError, "no-fail-on-error", false, "exit with 0 even if checks failed")
	flags.StringVar(&f.baseline, "baseline", "", "compare with an earlier JSON report")
	flags.IntVar(&f.maxNewFail, "max-new-fail", -1, "with --baseline, exit with 2 only if more than this number of checks newly fail")
	flags.BoolVar(&f.failOnRegression, "fail-on-regression", false, "with --baseline, exit with 2 only if fewer scenarios pass than before, by more than chance explains")
	flags.Float64Var(&f.minPassRate, "min-pass-rate", -1, "exit with 2 only if a smaller share of all checks passes: 0 to 1")
	flags.StringVar(&f.auditOut, "audit-out", "", "write the audit record, which the JSON report also contains, to a file")
	flags.StringVar(&f.artifacts, "artifacts", "", "folder for the diffs: what the agent of each attempt changed in its workspace")
	flags.StringVar(&f.export, "export", "", "name of a service; unlike the reference, ecp does not send results there, and prints a notice")
}

func (f *runFlags) check(cmd *cobra.Command) error {
	for _, rule := range []struct {
		violated bool
		message  string
	}{
		{f.compat != "" && f.compat != "reference", fmt.Sprintf("--compat must be reference, not %q", f.compat)},
		{f.jobs < 1, "--jobs must be 1 or more"},
		{f.repeat < 1 || f.repeat > runtime.MaxRepeat, fmt.Sprintf("--repeat must be 1 to %d", runtime.MaxRepeat)},
		{f.votes < 1 || f.votes > 25, "--judge-votes must be 1 to 25"},
		{f.maxTokens < 0 || f.maxCost < 0, "--max-tokens and --max-cost must not be negative"},
		{cmd.Flags().Changed("min-pass-rate") && (f.minPassRate < 0 || f.minPassRate > 1), "--min-pass-rate must be 0 to 1"},
		{f.maxNewFail >= 0 && f.baseline == "", "--max-new-fail needs --baseline"},
		{f.failOnRegression && f.baseline == "", "--fail-on-regression needs --baseline"},
		{f.failOnRegression && f.maxNewFail >= 0, "--fail-on-regression and --max-new-fail do not go together: one allows what chance explains, the other counts"},
		{f.retryErrors && f.resume == "" && f.reuseFrom == "", "--retry-errors needs --resume or --reuse-from"},
		{f.reuseFrom != "" && f.runFile == "", "--reuse-from needs --run-file, the file of the new run"},
		{f.reuseFrom != "" && f.resume != "", "--reuse-from and --resume do not go together: one begins a run, the other continues one"},
		{f.resume != "" && f.watch, "--resume and --watch do not go together: with a changed manifest, it is another run"},
		{f.resume != "" && f.runFile != "" && f.runFile != f.resume, "--resume adds to its run file, so --run-file cannot name another"},
		{len(f.targets) > 1 && slices.ContainsFunc(f.targets, func(t string) bool { return !runtime.IsURL(t) }), "several --target must be URLs of one agent's servers; to compare agents use --matrix target=A,B"},
		{f.json && f.watch, "--json and --watch do not go together"},
	} {
		if rule.violated {
			return errors.New(rule.message)
		}
	}
	if err := f.checkDistinct(); err != nil {
		return err
	}
	if f.noFailOnError {
		f.failOnError = false
	}
	if f.filter != "" {
		if _, err := regexp.Compile(f.filter); err != nil {
			return fmt.Errorf("--filter: %w", err)
		}
	}
	return nil
}

// evaluate runs a manifest once, writes the requested reports, and returns the result as an error.
func evaluate(ctx context.Context, f runFlags, s streams) error {
	o, err := f.options(ctx, s)
	if err == nil {
		err = f.checkOutputs(ctx)
	}
	if err != nil {
		return err
	}
	m, warnings, err := runtime.Load(ctx, f.manifest)
	for i := range warnings {
		fmt.Fprintln(s.err, warnings[i].Error())
	}
	if err != nil {
		return err
	}
	if len(f.targets) > 0 {
		m.Target, o.Servers = f.targets[0], f.targets[1:]
	}
	if !m.Checks() && !o.Reference {
		return fmt.Errorf("%s: nothing in this manifest is checked", f.manifest)
	}
	network := netclient.New(os.Getenv)
	defer network.Close()
	o.Client = network.Client(netclient.Options{HTTP1: true, Connect: o.Timeout})
	p := newProgress(s.err, f.verbose && !f.noVerbose, m.Target, fmt.Sprintf(", which may take %s to start", cmp.Or(o.StartTimeout, o.Timeout)))
	judge := f.newJudge(p.printLine)
	defer judge.Close()
	o.Tools = f.graders(judge)
	if err := f.useCache(&o); err != nil {
		return err
	}
	plan, err := runtime.NewPlan(m, o)
	if err != nil {
		return err
	}
	if f.baselineReport != nil && !f.baselineReport.Comparable(plan.VariantKeys()) {
		return fmt.Errorf("--baseline: %s evaluated another agent, or one that was configured otherwise (target %s)", f.baseline, f.baselineReport.Target)
	}
	for _, n := range plan.Notes {
		fmt.Fprintln(s.err, "note:", n)
	}
	if plan.Total == 0 && !o.Reference {
		if f.rerunFailed != "" && f.filter == "" {
			fmt.Fprintln(s.err, "everything passed in", f.rerunFailed)
			return nil
		}
		return f.nothingSelected(m)
	}
	if err := f.checkJudges(plan, judge, o); err != nil {
		return err
	}
	o.Watch, o.Warn = p.event, func(text string) { p.printLine("warning: " + text) }
	r, err := f.runPlan(ctx, plan, o, s)
	p.end()
	if r == nil {
		return err
	}
	if err := errors.Join(f.finish(r, s), err); err != nil {
		return err // takes precedence over the verdict, which did not reach its readers
	}
	return f.verdict(ctx, r)
}

// A run of at most maxInMemory cases always keeps its results in memory, so that the variants are
// compared.
const maxInMemory = 10000

// runPlan runs the cases. It keeps the results in a run file if the flags name one, or if there are too
// many for the memory and no report needs all of them.
func (f *runFlags) runPlan(ctx context.Context, p *runtime.Plan, o runtime.Options, s streams) (r *report.Report, err error) {
	path := cmp.Or(f.resume, f.runFile)
	all := slices.ContainsFunc([]string{f.html, f.jsonOut, f.auditOut, f.junit, f.markdown, f.baseline, f.compat}, func(flag string) bool { return flag != "" })
	if o.StoreOnly = p.Total > maxInMemory && !all && !f.json; o.StoreOnly && path == "" {
		dir, err := os.MkdirTemp("", "ecp-run-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path = filepath.Join(dir, "run"+runfile.Extension)
	}
	if path == "" {
		return runtime.Run(ctx, p, o)
	}
	w, err := f.openRun(path, p.Head(o), s)
	if err != nil {
		return nil, err
	}
	o.Store = w
	r, err = runtime.Run(ctx, p, o)
	if other := (*runfile.OtherRunError)(nil); errors.As(err, &other) {
		err = fmt.Errorf("--resume: %w. Nothing was run. To begin a run that reuses the other results: --reuse-from %[2]s --run-file NEW", err, printable(path))
	}
	return r, errors.Join(err, w.Close(r))
}

// openRun opens the run file to add to.
func (f *runFlags) openRun(path string, head *report.Report, s streams) (*runfile.Writer, error) {
	switch {
	case f.reuseFrom != "":
		w, err := runfile.Reuse(f.reuseFrom, path, head, f.retryErrors)
		return w, explainJournal(err)
	case f.resume != "":
		w, err := runfile.Continue(path, f.retryErrors)
		if !errors.Is(err, fs.ErrNotExist) {
			return w, explainJournal(err)
		}
		fmt.Fprintf(s.err, "note: there is no run file %s yet; all scenarios are run\n", path) // the run was killed before it created the file
	}
	return runfile.Create(path, head)
}

// explainJournal adds advice to the error for a file that is not a run file: what to do if the file
// is a journal.
func explainJournal(err error) error {
	if errors.Is(err, runfile.ErrNotRun) {
		return fmt.Errorf("%w; journals of older versions cannot be continued: start again with --run-file", err)
	}
	return err
}

// options converts flags to the options of a run.
func (f *runFlags) options(ctx context.Context, s streams) (o runtime.Options, err error) {
	o = runtime.Options{
		Version: version, Jobs: f.jobs, Repeat: f.repeat, Keep: f.keep, Reference: f.compat == "reference",
		Judge:  f.judgeIdentity(),
		Budget: runtime.Budget{Tokens: f.maxTokens, CostUSD: f.maxCost}, Path: os.Getenv("PATH"),
		Getenv: os.Getenv, Artifacts: f.artifacts,
		Now: time.Now, NewID: uuid.NewString,
	}
	if o.Supervisor, err = os.Executable(); err != nil {
		fmt.Fprintln(s.err, "warning: own executable is unknown; agents run without a supervisor:", err)
	}
	if f.artifacts != "" {
		if err := os.MkdirAll(f.artifacts, 0o755); err != nil {
			return o, fmt.Errorf("--artifacts: %w", err)
		}
	}
	if o.Timeout, err = callTimeout(f.timeout); err != nil {
		return o, err
	}
	if f.timeout == "" && os.Getenv(ecp.TimeoutVariable) == "" && !o.Reference {
		o.StartTimeout = startTimeout
	}
	if o.Budget.Time, err = f.duration(); err != nil {
		return o, err
	}
	if o.Config, err = runtime.ParseConfig(f.config); err != nil {
		return o, usage.Errorf("--config: %w", err)
	}
	if o.Variants, err = runtime.Matrix(f.matrix); err != nil {
		return o, usage.Errorf("--matrix: %w", err)
	}
	if o.Headers, err = parseHeaders(f.headers); err != nil {
		return o, err
	}
	o.Filter, err = f.caseFilter(ctx)
	return o, err
}

// parseHeaders parses the values of --header.
func parseHeaders(lines []string) (http.Header, error) {
	out := http.Header{}
	for _, h := range lines {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usage.Errorf("--header must be NAME: VALUE")
		}
		out.Add(name, strings.TrimSpace(value))
	}
	return out, nil
}

// caseFilter returns a filter for the requested cases, or nil if all are requested. Without a filter, the
// run can start before all cases are known.
func (f *runFlags) caseFilter(ctx context.Context) (func(runtime.Case) bool, error) {
	if f.filter == "" && f.rerunFailed == "" {
		return nil, nil
	}
	name := regexp.MustCompile(f.filter) // checked before
	failed := func(*report.Scenario) bool { return true }
	if f.rerunFailed != "" {
		old, err := readReport(ctx, f.rerunFailed)
		if err != nil {
			return nil, err
		}
		failed = old.NotPassed()
	}
	return func(c runtime.Case) bool {
		return name.MatchString(c.Scenario.Name) && failed(&report.Scenario{Name: c.Scenario.Name, ID: c.ID, Aliases: c.Aliases, VariantKey: c.VariantKey, Variant: c.Labels})
	}, nil
}

// nothingSelected returns the error for flags that select none of a manifest's cases.
func (f *runFlags) nothingSelected(m *runtime.Manifest) error {
	if f.rerunFailed != "" {
		return fmt.Errorf("--filter %s matches nothing that did not pass in %s", f.filter, f.rerunFailed)
	}
	const shown = 10
	names := make([]string, 0, len(m.Scenarios))
	for i := range m.Scenarios {
		names = append(names, printable(m.Scenarios[i].Name))
	}
	list := strings.Join(names[:min(shown, len(names))], ", ")
	if more := len(names) - shown; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	if len(names) == 1 {
		return fmt.Errorf("--filter %s does not match the only scenario, %s", f.filter, list)
	}
	return fmt.Errorf("--filter %s matches none of the %d scenarios (%s)", f.filter, len(names), list)
}

// readReport reads a JSON report, which may be a stream (see safeio.ReadInput).
func readReport(ctx context.Context, path string) (*report.Report, error) {
	data, err := safeio.ReadInput(ctx, path, maxReport)
	if err != nil {
		return nil, err
	}
	r, err := report.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// verdict returns the result of a run as an error.
func (f *runFlags) verdict(ctx context.Context, r *report.Report) error {
	switch {
	case ctx.Err() != nil && r.Interrupted:
		return exitCode(exitInterrupted)
	case r.Status == report.Error && (f.compat != "reference" || r.Failed == 0):
		return exitCode(exitError)
	case r.Total == 0 && f.compat != "reference":
		return errors.New("nothing was checked")
	case f.failOnRegression && r.Baseline != nil && len(r.Baseline.Pairs) == 0:
		return errors.New("--fail-on-regression: the baseline was not written by this version, so its scenarios cannot be paired; write it again with --json-out")
	case f.failOnRegression && r.Baseline != nil && !slices.ContainsFunc(r.Baseline.Pairs, func(p report.Pair) bool { return p.Cases > 0 }):
		return errors.New("--fail-on-regression: this run and the baseline have no case in common")
	case r.Failed == 0 || !f.failOnError || f.tolerates(r):
		return nil
	}
	return exitCode(exitFailed)
}

// tolerates reports whether the user set limits for failed checks, and the run keeps all of them.
func (f *runFlags) tolerates(r *report.Report) bool {
	set, met := false, true
	limit := func(isSet bool, keeps func() bool) {
		if isSet {
			set, met = true, met && keeps()
		}
	}
	limit(f.failOnRegression && r.Baseline != nil, func() bool { return !r.Baseline.Regressed() })
	limit(f.maxNewFail >= 0 && r.Baseline != nil, func() bool { return len(r.Baseline.NewFail) <= f.maxNewFail })
	limit(f.minPassRate >= 0, func() bool { return float64(r.Passed) >= f.minPassRate*float64(r.Total) })
	return set && met
}
