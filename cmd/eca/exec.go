package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/server"
)

// Exit codes of `eca exec`.
const (
	exitFailed      = 1   // the turn failed: no model, a provider's error
	exitRefused     = 3   // the answer is complete, but tool calls were refused
	exitInterrupted = 130 // Ctrl-C
)

const execHelp = `Runs one turn without an editor and writes the answer to stdout. What tools do, and
eca's own notices, go to stderr. Without PROMPT, or with -, the prompt is read from
stdin; with PROMPT, text on stdin is given to the model as context.

Tool calls that need approval are decided by --approve:
  ask        ask on the terminal; without a terminal, refuse (the default)
  auto-edit  approve changes to files in this directory, ask for the rest
  workspace  also run commands that stay in the sandbox of this directory, without network
             and with an undo point, where the system can hold that; ask for the rest
  all        approve everything, in the sandbox; ask about what wants to leave it
  none       refuse everything that needs approval
The model is told about a refusal and goes on.

--json prints lines of JSON: first {"type":"start"} with chatId, model, agent, folder and
version; then every notification about the chat ({"method", "params"}), and
{"type":"waiting"} while the provider is silent; at last
{"type":"result"} with text (the final answer), exitReason, exitCode, error (why it failed),
chatId, model, tokens and cost in dollars where they are known, kept (whether the chat is
stored), and refused, if any: the tool calls that were not allowed to run, each with tool and
reason.

Exit codes: 0 done; 1 failed, also when the model, agent or chat does not exist; 2 wrong
usage; 3 done, but tool calls were refused; 130 interrupted.`

// execFlags are the flags of `eca exec`.
type execFlags struct {
	approve   string
	json      bool
	model     string
	agent     string
	chat      string
	latest    bool
	folder    string
	ephemeral bool
	images    []string
	output    string
	schema    string
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
			log, err := logger(forReaders(*sf, cmd).logLevel, stderr)
			if err != nil {
				return err
			}
			in, err := newExecInput(f, args, stdin, stderr)
			var wrong *usage.Error
			if errors.As(err, &wrong) {
				return err
			}
			code := exitFailed
			if err == nil {
				code, err = runExec(cmd.Context(), *sf, f, in, log, stdout, stderr)
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
	flags.StringVar(&f.chat, "chat", "", "id of a chat to continue")
	flags.BoolVar(&f.latest, "continue", false, "continue the last chat of this directory")
	flags.StringVarP(&f.folder, "cd", "C", "", "work in this directory")
	flags.BoolVar(&f.ephemeral, "ephemeral", false, "do not keep the chat")
	flags.StringArrayVar(&f.images, "image", nil, "give the model this image file; repeat it for several")
	flags.StringVarP(&f.output, "output", "o", "", "write the final answer to this file, too")
	flags.StringVar(&f.schema, "output-schema", "", "have the model answer with JSON that matches the JSON Schema in this file")
	cmd.MarkFlagsMutuallyExclusive("chat", "continue", "ephemeral")
	return cmd
}

// retryTotal bounds how long eca exec repeats a request: nobody watches it who could stop.
const retryTotal = 2 * time.Minute

// runExec talks the protocol to a daemon in this process.
func runExec(ctx context.Context, sf serverFlags, f execFlags, in *execInput, log *logs, stdout, stderr io.Writer) (int, error) {
	o, err := daemonOptions(sf, log.Logger)
	if err != nil {
		return exitFailed, err
	}
	o.RetryTotal, o.Ephemeral, o.Unasked = retryTotal, f.ephemeral, f.unaskedMode()
	d := watchedDaemon(o, log)
	defer d.Close()

	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	opts := server.Options{Host: d, Version: version, Log: log.Logger}
	if sf.verbose {
		opts.Trace = log.trace()
	}
	served := make(chan error, 1)
	// An interrupt stops the prompt first; the server's own life is not ctx's.
	alive := context.WithoutCancel(ctx)
	go func() { served <- server.Serve(alive, fromClient, toClient, opts) }()

	c := newExecClient(f, in.folder, stdout, stderr)
	c.daemon, c.configFile = d, sf.configFile
	c.conn = jsonrpc.NewConn(fromServer, toServer, jsonrpc.Options{Log: log.Logger})
	c.conn.Start(alive, c.handle)
	code, err := c.run(ctx, alive, in)
	if err != nil {
		c.abort(err)
	}
	_ = c.conn.Call(alive, "shutdown", nil, nil)
	_ = c.conn.Notify(alive, "exit", nil)
	if serveErr := <-served; err == nil {
		err = serveErr
	}
	_ = toClient.Close()
	_ = toServer.Close()
	c.conn.Close()
	return code, err
}

// serverPatience is how long the prompt waits for MCP servers: the tools of those that come
// later are nobody's.
const serverPatience = 10 * time.Second

// prepare waits for what the flags may name: agents of plugins, models of local servers.
func (c *execClient) prepare(ctx context.Context) {
	c.daemon.SyncPlugins(ctx)
	if c.daemon.ModelChoice().Default == "" { // a local server's models are known when it was asked
		defer c.awaiting(func() string { return waitingForModels })()
		ctx, cancel := context.WithTimeout(ctx, serverPatience)
		defer cancel()
		c.daemon.SyncModels(ctx)
	}
}

// waitingForModels is said while providers are asked for their models.
const waitingForModels = "Waiting for providers to list their models"

// startServers waits for the MCP servers, and says which the prompt goes on without.
func (c *execClient) startServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	stop := c.awaiting(func() string {
		names := c.startingServers()
		if len(names) == 0 {
			return ""
		}
		return fmt.Sprintf("Waiting for MCP servers to start, up to %s: %s", serverPatience, printable(strings.Join(names, ", ")))
	})
	c.daemon.StartMCPServers(ctx)
	stop()
	c.missingServers()
}

// check looks at what the flags and the configuration name before anything is asked of a
// model: a misspelled agent must not become another one. It returns the chat to prompt.
func (c *execClient) check(ctx context.Context, prompt string) (chatID string, err error) {
	cfg := c.daemon.Config()
	if broken := cfg.Broken(); len(broken) > 0 {
		return "", errors.New(strings.Join(broken, "\n"))
	}
	if err := checkAgent(cfg.Config, c.flags.agent); err != nil {
		return "", err
	}
	if words := strings.Fields(prompt); words[0] == "/login" {
		// It asks for a key in the next prompt, which another eca exec would send to a model.
		return "", fmt.Errorf("/login needs a chat that goes on; use `%s`", strings.Join(append([]string{"eca login"}, words[1:]...), " "))
	}
	switch {
	case c.flags.chat != "" && !chat.ValidID(c.flags.chat):
		return "", fmt.Errorf("%q is not a valid chat id", c.flags.chat)
	case c.flags.chat != "":
		chatID = c.flags.chat
		known, err := c.daemon.Engine().Known(ctx, chatID)
		if err != nil {
			return "", err
		}
		if !known || chat.IsSubagent(chatID) {
			return "", fmt.Errorf("there is no chat %q; `eca read-chat --workspace %s` lists the chats of this directory", chatID, c.root())
		}
	case c.flags.latest:
		list, err := c.daemon.Engine().List(ctx, chat.ByUpdated, 1)
		if err != nil {
			return "", err
		}
		if len(list) == 0 {
			return "", fmt.Errorf("there is no earlier chat of %s; begin one without --continue", c.root())
		}
		chatID = list[0].ID
	}
	if err := c.checkModel(ctx, cfg, chatID != ""); err != nil {
		return "", err
	}
	if c.flags.unaskedMode() != "" {
		if why := c.daemon.NotContained(cfg.AgentOrDefault(c.flags.agent)); why != "" {
			c.note("--approve workspace: commands are not run without a question, since " + why)
		}
	}
	if chatID == "" {
		chatID = uuid.NewString()
	}
	return chatID, nil
}

// checkModel looks at the model that the flags, or else the configuration, name.
func (c *execClient) checkModel(ctx context.Context, cfg *config.Loaded, continued bool) error {
	defer c.awaiting(func() string { return waitingForModels })()
	if c.flags.model != "" {
		_, err := c.daemon.CheckModel(ctx, c.flags.model)
		return err
	}
	origin, set := cfg.Origin("defaultModel")
	if continued || !set || origin.IsDefault() || cfg.DefaultModel == "" {
		return nil
	}
	if _, err := c.daemon.CheckModel(ctx, cfg.DefaultModel); err != nil {
		return fmt.Errorf("defaultModel (%s): %w", origin, err)
	}
	return nil
}

// checkAgent says why users cannot choose an agent by that name; "" is the default.
func checkAgent(cfg *config.Config, name string) error {
	a, known := cfg.Agents[name]
	switch {
	case name == "" || known && a.Primary() || cfg.AgentOrDefault(name) == "code" && (name == "agent" || name == "build"):
		return nil
	case known:
		return fmt.Errorf("the agent %q is a subagent: other agents start it; choose one of: %s", name, strings.Join(primaryAgents(cfg), ", "))
	}
	hint := suggest.DidYouMean(name, primaryAgents(cfg))
	if hint == "" {
		hint = "; there are: " + strings.Join(primaryAgents(cfg), ", ")
	}
	return fmt.Errorf("there is no agent %q%s", name, hint)
}

// root is the directory that exec works in.
func (c *execClient) root() string { return c.cwd.Roots()[0] }

// execFolder is the directory to work in.
func execFolder(flag string) (string, error) {
	if flag == "" {
		return os.Getwd()
	}
	dir, err := filepath.Abs(flag)
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

// primaryAgents lists the agents that users can choose.
func primaryAgents(cfg *config.Config) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		if cfg.Agents[name].Primary() {
			out = append(out, name)
		}
	}
	return out
}
