package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc/scanner"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/server"
)

// Exit codes of `eca exec`.
const (
	exitFailed      = 1   // the turn failed: no model, a provider's error
	exitRefused     = 3   // the answer is complete, but tool calls were refused
	exitBudget      = 4   // the turn ended because its budget is spent
	exitInterrupted = 130 // Ctrl-C
)

const execHelp = `Runs one turn without an editor and writes the answer to stdout. Notices and the progress of tools
go to stderr. Without PROMPT, or with -, eca reads the prompt from stdin; with PROMPT, text on
stdin is context for the model.

--approve decides about tool calls that need approval:
  ask        ask on the terminal; without a terminal, refuse (the default)
  auto-edit  approve changes to files in this directory, ask about the rest
  workspace  also run commands that stay in the sandbox of this directory, without network and
             with an undo point, if the system supports this; ask about the rest
  all        approve everything, also what cannot be undone, except commands that need to leave the
             sandbox of this directory; ask about those. If the sandbox is off, nothing stops them
  none       refuse everything that needs approval
The model gets a refusal as the result of the call, and continues.

--max-cost, --max-tokens and --max-time end the turn once its requests, with those of subagents,
titles and summaries, have used that much. An answer that is arriving is not cut off, so the last
request may exceed the limit.

--json prints lines of JSON. The first is {"type":"start"} with chatId, model, agent, folder and
version. Every notification about the chat follows ({"method", "params"}), and {"type":"waiting"}
while the provider is silent. The last line is {"type":"result"} with
  text          the final answer
  exitReason    done, failed, stopped, ...; length, refusal, empty or unmarked if the answer may be
                incomplete (unmarked: the provider did not say that the answer is complete)
  exitCode, chatId, model
  error         why the turn failed
  usage.tokens  the size of the conversation in the model's context
  cost          of the chat in dollars, if it is known
  kept          whether the chat is stored
  refused       the tool calls that were not allowed to run, each with tool and reason

If the run fails or is interrupted, the file of --output stays unchanged.

Exit codes: 0 done; 1 failed, also if the model, agent or chat does not exist, or the answer is
empty, was cut at the output limit, or was refused or filtered; 2 wrong usage; 3 done, but tool
calls were refused; 4 a budget is spent; 130 interrupted.`

// execFlags are the flags of `eca exec`.
type execFlags struct {
	approve      string
	json         bool
	model        string
	agent        string
	chat         string
	continueLast bool
	folder       string
	ephemeral    bool
	images       []string
	output       string
	schema       string
	limits       execLimits

	turnBudget  []string // limits, as limits.budget returns them
	promptHints []string // see errNoPrompt
}

// execLimits are the limits of the turn.
type execLimits struct {
	cost     string
	tokens   int64
	timeText string
	time     time.Duration // timeText, parsed by budget
}

// budget returns the limits in the syntax of the configuration. A flag that is not set adds no limit.
func (l *execLimits) budget(set func(flag string) bool) (out []string, err error) {
	if set("max-tokens") && l.tokens <= 0 {
		return nil, usage.Errorf("--max-tokens must be more than 0, not %d", l.tokens)
	}
	if set("max-time") {
		if l.time, err = usage.Time(l.timeText); err != nil {
			return nil, usage.Errorf("--max-time: %w", err)
		}
	}
	cost := l.cost
	if n, err := strconv.ParseFloat(strings.TrimPrefix(cost, "$"), 64); err == nil {
		if n <= 0 {
			return nil, usage.Errorf("--max-cost must be more than 0, such as 2.50, not %s", l.cost)
		}
		cost = "$" + strings.TrimPrefix(cost, "$")
	}
	for _, limit := range []struct{ flag, text, form string }{
		{"max-cost", cost, "write dollars as in 2.50"},
		{"max-tokens", fmt.Sprintf("%d tokens", l.tokens), "write fewer"},
		{"max-time", fmt.Sprintf("%f s", l.time.Seconds()), "write as in 90s or 10m"},
	} {
		if !set(limit.flag) {
			continue
		}
		amount, err := config.ParseBudget([]string{limit.text})
		switch {
		case err != nil:
			return nil, usage.Errorf("--%s: %s", limit.flag, strings.Replace(err.Error(), config.BudgetForm, limit.form, 1))
		case limit.flag == "max-cost" && amount.Cost == 0:
			return nil, usage.Errorf("--max-cost: %q is not an amount of money; %s", cost, limit.form)
		}
		out = append(out, limit.text)
	}
	return out, nil
}

func execCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [PROMPT | -]",
		Short: "Run one turn in this directory and print the answer",
		Long:  execHelp,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return usage.Errorf("the prompt is one argument: quote it")
			case len(args) == 1 && args[0] == "":
				return errNoPrompt()
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := usage.Choice("approve", f.approve, approveAsk, approveAutoEdit, approveWorkspace, approveAll, approveNone); err != nil {
				return err
			}
			var err error
			if f.turnBudget, err = f.limits.budget(cmd.Flags().Changed); err != nil {
				return err
			}
			log, err := logger(withHumanLogLevel(*sf, cmd).logLevel, stderr)
			if err != nil {
				return err
			}
			f.promptHints = describeTextFlags(cmd.Flags())
			in, err := newExecInput(cmd.Context(), f, args, stdin, stderr)
			var usageErr *usage.Error
			if errors.As(err, &usageErr) || errors.Is(err, context.Canceled) {
				return err
			}
			code := exitFailed
			switch {
			case err == nil:
				ctx, cancel := cmd.Context(), func(error) {}
				if f.output == "" { // with --output, the answer is needed even if stdout is closed
					ctx, cancel = usage.WhileRead(ctx, stdout)
				}
				defer cancel(nil)
				code, err = runExec(ctx, *sf, f, in, log, stdout, stderr)
				if unread := context.Cause(ctx); usage.IsUnread(unread) {
					return unread
				}
			case f.json:
				writeAbortedResult(stdout, code, err)
			}
			if err != nil {
				fmt.Fprintln(stderr, "eca exec:", usage.Message(err))
			}
			if code != 0 {
				return exitError{code}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.approve, "approve", approveAsk, "how to decide about tool calls that ask: ask, auto-edit, workspace, all or none")
	flags.BoolVar(&f.json, "json", false, "print lines of JSON instead of the answer")
	flags.StringVarP(&f.model, "model", "m", "", "model to use, as provider/model")
	flags.StringVar(&f.agent, "agent", "", "agent to use")
	flags.StringVar(&f.chat, "chat", "", "id of a chat to continue, or its first characters (at least 4)")
	flags.BoolVar(&f.continueLast, "continue", false, "continue the last chat of this directory with a prompt to a model")
	flags.StringVarP(&f.folder, "cd", "C", "", "work in this directory")
	flags.BoolVar(&f.ephemeral, "ephemeral", false, "do not keep the chat")
	flags.StringArrayVar(&f.images, "image", nil, "give the model this image file; repeat it for several")
	flags.StringVarP(&f.output, "output", "o", "", "write the final answer to this file, too")
	flags.StringVar(&f.schema, "output-schema", "", "have the model answer with JSON that matches the JSON Schema in this file")
	flags.StringVar(&f.limits.cost, "max-cost", "", "end the turn once it has cost this many dollars")
	flags.Int64Var(&f.limits.tokens, "max-tokens", 0, "end the turn once it has used this many tokens")
	flags.StringVar(&f.limits.timeText, "max-time", "", "end the turn once it has taken this long, as in 90s, 10m or a number of seconds; a running answer or command is finished first")
	cmd.MarkFlagsMutuallyExclusive("chat", "continue", "ephemeral")
	return cmd
}

// retryTotal bounds how long eca exec retries a request: often there is no user who could stop it.
const retryTotal = 2 * time.Minute

// runExec runs a prompt as a protocol client of a daemon in this process, and returns the exit code.
func runExec(ctx context.Context, sf serverFlags, f execFlags, in *execInput, log *logs, stdout, stderr io.Writer) (int, error) {
	c := newExecClient(f, in.folder, stdout, stderr)
	o, err := daemonOptions(sf, log.Logger)
	if err != nil {
		c.abort(err)
		return exitFailed, err
	}
	o.RetryTotal, o.Ephemeral, o.Unasked, o.OnlyCommandQuestions = retryTotal, f.ephemeral, f.unaskedMode(), true
	o.TurnBudget, o.CommandTime = f.turnBudget, commandTime
	d := newDaemonWith(o, log)
	defer func() {
		shown := d.TelemetryNotice()
		d.Close() // sends the rest of the telemetry
		if n := d.TelemetryNotice(); n != shown {
			c.note(n)
		}
	}()

	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	opts := server.Options{Host: d, Version: version, Log: log.Logger}
	if sf.verbose {
		opts.Trace = log.trace()
	}
	serverDone := make(chan error, 1)
	// An interrupt stops the prompt first, so the server must not stop with ctx.
	serverCtx := context.WithoutCancel(ctx)
	go func() { serverDone <- server.Serve(serverCtx, fromClient, toClient, opts) }()

	c.daemon, c.configFile = d, sf.configFile
	c.conn = jsonrpc.NewConn(fromServer, toServer, jsonrpc.Options{Decode: scanner.Decode, Log: log.Logger})
	c.conn.Start(serverCtx, c.handle)
	code, err := c.run(ctx, serverCtx, in)
	if err != nil {
		c.abort(err)
	}
	stopNotice := c.noteIfSlow(func() string { return "Waiting for hooks and commands to end, up to 10s" })
	_ = c.conn.Call(serverCtx, "shutdown", nil, nil)
	_ = c.conn.Notify(serverCtx, "exit", nil)
	if serveErr := <-serverDone; err == nil {
		err = serveErr
	}
	stopNotice()
	_ = toClient.Close()
	_ = toServer.Close()
	c.conn.Close()
	return code, err
}

// serverPatience bounds the wait for MCP servers before the prompt is sent. The run does not use the
// tools of servers that start later.
const serverPatience = 10 * time.Second

// prepare loads agents of plugins and models of local servers, because flags may name them.
func (c *execClient) prepare(ctx context.Context) {
	c.daemon.SyncPlugins(ctx)
	ask := c.daemon.AskLocalModels // only the local servers know their models
	switch {
	case c.daemon.ModelChoice().Default == "":
		ask = c.daemon.SyncModels
	case !c.daemon.OnlyDemo():
		return
	}
	defer c.noteIfSlow(func() string { return waitingForModels })()
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	ask(ctx)
}

// waitingForModels is shown while eca fetches the model lists of providers.
const waitingForModels = "Waiting for providers to list their models"

// check validates the names in the flags and the configuration before anything is sent to a model:
// a misspelled agent must not be replaced with another one. It returns the id of the chat to prompt.
func (c *execClient) check(ctx context.Context, prompt string) (chatID string, err error) {
	cfg, local := c.daemon.Config(), c.daemon.AnswersItself(prompt) // such as /hooks, which shows the mistakes
	if broken := cfg.Broken(); len(broken) > 0 && !local {
		return "", errors.New(strings.Join(broken, "\n"))
	}
	if err := daemon.CheckAgent(cfg, c.flags.agent); err != nil {
		return "", err
	}
	if lost, weakened := config.LostRestrictions(cfg, c.flags.agent); len(lost) > 0 && !local {
		what := "the configuration may differ from what you intended"
		if !weakened {
			what = "the agent " + cfg.AgentOrDefault(c.flags.agent) + " does not work as its file says"
		}
		return "", fmt.Errorf("%s; correct it (`eca config check` shows all problems):\n%s", what, strings.Join(lost, "\n"))
	}
	if missing := cfg.MissingGuards(c.root()); len(missing) > 0 && !local {
		return "", errors.New(strings.Join(missing, "\n"))
	}
	if words := strings.Fields(prompt); words[0] == "/login" {
		// /login expects the key in the next prompt of the chat. Another eca exec would send that
		// prompt to a model.
		return "", fmt.Errorf("/login needs an interactive chat; use `%s`", strings.Join(append([]string{"eca login"}, words[1:]...), " "))
	}
	switch {
	case c.flags.chat != "" && !chat.ValidID(c.flags.chat):
		return "", fmt.Errorf("%q is not a valid chat id", c.flags.chat)
	case c.flags.chat != "":
		var known bool
		if chatID, known, err = resolveChatFlag(ctx, c.daemon.Engine(), c.flags.chat); err != nil {
			return "", err
		}
		if !known || chat.IsSubagent(chatID) {
			return "", fmt.Errorf("there is no chat %q%s; `eca chats list` lists the chats, `eca chats list --workspace %s` those of this directory", chatID, chat.ShortID(chatID), visible.Argument(c.root()))
		}
		if err := c.checkFolder(ctx, chatID); err != nil {
			return "", err
		}
	case c.flags.continueLast:
		last, ok, err := c.daemon.Engine().LastConversation(ctx)
		if err != nil {
			return "", err
		}
		if !ok {
			return "", fmt.Errorf("there is no earlier chat of %s; begin one without --continue", c.root())
		}
		chatID = last.ID
	}
	if !local || c.flags.model != "" {
		if err := c.checkModel(ctx, cfg, chatID != ""); err != nil {
			return "", err
		}
	}
	if err := c.checkFlags(ctx, chatID); err != nil {
		return "", err
	}
	if c.flags.unaskedMode() != "" {
		if why := c.daemon.NotContained(cfg.AgentOrDefault(c.flags.agent)); why != "" {
			c.note("--approve workspace: commands are not run without a question, since " + why)
		}
	}
	if c.flags.approve == approveAll {
		if why := c.daemon.SandboxUnavailable(); why != "" {
			c.note("--approve all: commands run with all your rights, since " + why)
		}
	}
	if chatID == "" {
		chatID = uuid.NewString()
	}
	return chatID, nil
}

// resolveChatFlag returns the id of the chat that --chat identifies by its id or a prefix of it.
func resolveChatFlag(ctx context.Context, engine *chat.Engine, name string) (id string, known bool, err error) {
	if known, err = engine.Exists(ctx, name); known || err != nil || chat.ShortID(name) != "" {
		return name, known, err
	}
	err = withStore(func(s *store.Store) error {
		id, err = resolveChat(ctx, s, name)
		return err
	})
	if errors.Is(err, errNoChats) || errors.Is(err, errUnknownChat) {
		return name, false, nil
	}
	return id, err == nil, err
}

// checkFolder refuses to continue a chat of another directory, because its statements about files do
// not apply here.
func (c *execClient) checkFolder(ctx context.Context, chatID string) error {
	chats, err := c.daemon.Engine().List(ctx, chat.ByUpdated, 0)
	if err != nil || slices.ContainsFunc(chats, func(s chat.Summary) bool { return s.ID == chatID }) {
		return err
	}
	session, ok, err := c.daemon.Engine().OpenExisting(ctx, chatID)
	if err != nil || !ok {
		return err
	}
	roots := session.Meta().Roots
	if len(roots) == 0 {
		return nil
	}
	return fmt.Errorf("the chat %s belongs to %s; continue it there: eca exec -C %s --chat %s", chatID, strings.Join(roots, ", "), visible.Argument(roots[0]), chatID)
}

// checkModel checks the model that --model or the configuration selects.
func (c *execClient) checkModel(ctx context.Context, cfg *config.Loaded, continued bool) error {
	defer c.noteIfSlow(func() string { return waitingForModels })()
	if c.flags.model != "" {
		_, err := c.daemon.CheckModel(ctx, c.flags.model)
		return err
	}
	if wrong := cfg.MistakesAt("providers", "defaultModel"); len(wrong) > 0 && c.daemon.OnlyDemo() {
		return fmt.Errorf("no provider that is configured can be used: %s", wrong[0])
	}
	if continued {
		return nil
	}
	if c.daemon.OnlyDemo() && cfg.DefaultModel != providers.DemoModel {
		if why := append(c.daemon.Unavailable(), ignoredFiles(c.daemon, c.root())...); len(why) > 0 {
			return fmt.Errorf("no provider that is configured can be used: %s", strings.Join(why, "; "))
		}
	}
	key, model := []string{"defaultModel"}, cfg.DefaultModel
	if agent := cfg.AgentOrDefault(c.flags.agent); cfg.Agents[agent].DefaultModel != "" {
		key, model = []string{"agent", agent, "defaultModel"}, cfg.Agents[agent].DefaultModel
	}
	if origin, set := cfg.Origin(key...); set && !origin.IsDefault() && strings.Contains(model, "/") {
		if _, err := c.daemon.CheckModel(ctx, model); err != nil {
			for _, mistake := range cfg.MistakesAt("providers") {
				err = fmt.Errorf("%w\n%s", err, mistake)
			}
			return fmt.Errorf("%s (%s): %w", config.KeyPath(key), origin, err)
		}
		return nil
	}
	if wrong := append(cfg.MistakesBelow(key...), cfg.MistakesAt("defaultModel")...); len(wrong) > 0 {
		return fmt.Errorf("the configuration does not say which model to use; correct it, or choose one with --model: %s", wrong[0])
	}
	return nil
}

// checkFlags refuses flags that do not fit the model of the turn: a cost limit that could never be
// reached because the price is unknown, and images that the model does not accept.
func (c *execClient) checkFlags(ctx context.Context, chatID string) error {
	if c.flags.limits.cost == "" && len(c.flags.images) == 0 {
		return nil
	}
	cfg := c.daemon.Config()
	name := c.flags.model
	if name == "" && chatID != "" {
		if session, ok, err := c.daemon.Engine().OpenExisting(ctx, chatID); ok && err == nil {
			name = session.Meta().Model
		}
	}
	m, err := c.daemon.Resolve(cmp.Or(name, cfg.Agents[cfg.AgentOrDefault(c.flags.agent)].DefaultModel), "")
	if err != nil && c.flags.model == "" {
		m, err = c.daemon.Resolve("", "") // as the turn does
	}
	switch {
	case err != nil:
		return nil //nolint:nilerr // the turn reports it
	case c.flags.limits.cost != "" && m.ID == providers.DemoModel:
		return fmt.Errorf("--max-cost: the demo model %s is a script that costs nothing; leave out --max-cost, or choose a model of a provider", m.ID)
	case c.flags.limits.cost != "" && (m.Cost.Input == nil || m.Cost.Output == nil):
		return fmt.Errorf("--max-cost: the price of %s is not known; set `cost` of the model in the configuration, or use --max-tokens", printable(m.Spelled))
	case len(c.flags.images) > 0 && m.NoImages:
		return fmt.Errorf("--image: %s is not known to take images; choose another model, or set imageInput of the model in the configuration", printable(m.Spelled))
	}
	return nil
}

// root returns the working directory of the run.
func (c *execClient) root() string { return c.cwd.Roots()[0] }

// execFolder returns the working directory that the flag -C selects; without it, the current one.
func execFolder(flag string) (string, error) {
	if flag == "" {
		return workingDir()
	}
	dir, err := absolute(flag)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return "", fmt.Errorf("-C: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("-C: %s is not a directory", dir)
	}
	return dir, nil
}
