package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/server"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Exit codes of `eca exec`.
const (
	exitFailed      = 1   // the turn failed: no model, a provider's error
	exitRefused     = 3   // the answer is complete, but tool calls were refused
	exitInterrupted = 130 // Ctrl-C
)

const execHelp = `Runs one turn without an editor and writes the answer to stdout. What tools do, and
eca's own notices, go to stderr. Text on stdin is given to the model as context.

Tool calls that need approval are decided by --approve:
  ask        ask on the terminal; without a terminal, refuse (the default)
  auto-edit  approve changes to files in this directory, ask for the rest
  all        approve everything
  none       refuse everything that needs approval
The model is told about a refusal and goes on.

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 done, but tool calls were refused;
130 interrupted.`

// execFlags are the flags of `eca exec`.
type execFlags struct {
	approve string
	json    bool
	model   string
	agent   string
	chat    string
}

func execCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   `exec "PROMPT"`,
		Short: "Run one turn in this directory and print the answer",
		Long:  execHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || strings.TrimSpace(args[0]) == "" {
				return usage.Errorf("the prompt is one argument: quote it")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := usage.Choice("approve", f.approve, "ask", "auto-edit", "all", "none"); err != nil {
				return err
			}
			level := sf.logLevel
			if !cmd.Flags().Changed("log-level") {
				level = "error" // stderr is for people here
			}
			log, err := logger(level, stderr)
			if err != nil {
				return err
			}
			code, err := runExec(cmd.Context(), *sf, f, args[0], log, stdin, stdout, stderr)
			if err != nil {
				fmt.Fprintln(stderr, "eca:", err)
			}
			if code != 0 {
				return exitError{code}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.approve, "approve", "ask", "how to decide about tool calls that ask: ask, auto-edit, all or none")
	cmd.Flags().BoolVar(&f.json, "json", false, "print every notification of the protocol as a line of JSON instead")
	cmd.Flags().StringVar(&f.model, "model", "", "model to use, as provider/model")
	cmd.Flags().StringVar(&f.agent, "agent", "", "agent to use")
	cmd.Flags().StringVar(&f.chat, "chat", "", "id of a chat to continue")
	return cmd
}

// runExec talks the protocol to a daemon in this process.
func runExec(ctx context.Context, sf serverFlags, f execFlags, prompt string, log *logs, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return exitFailed, err
	}
	extra, err := pipedInput(stdin)
	if err != nil {
		return exitFailed, fmt.Errorf("read stdin: %w", err)
	}
	d, err := newDaemon(sf, log)
	if err != nil {
		return exitFailed, err
	}
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

	c := newExecClient(f, cwd, stdout, stderr)
	c.prepare = func(ctx context.Context) {
		d.SyncPlugins(ctx)
		ctx, cancel := context.WithTimeout(ctx, serverPatience)
		defer cancel()
		d.StartMCPServers(ctx)
	}
	c.conn = jsonrpc.NewConn(fromServer, toServer, jsonrpc.Options{Log: log.Logger})
	c.conn.Start(alive, c.handle)
	code, err := c.turn(ctx, alive, prompt, extra)
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

// pipedInput reads stdin when something is piped into it.
func pipedInput(stdin io.Reader) (string, error) {
	if file, ok := stdin.(*os.File); ok {
		info, err := file.Stat()
		if err != nil || info.Mode()&os.ModeCharDevice != 0 {
			return "", nil //nolint:nilerr // no usable stdin is no input
		}
	}
	const limit = 256 << 10
	data, err := io.ReadAll(io.LimitReader(stdin, limit+1))
	if len(data) > limit {
		return "", fmt.Errorf("more than %d bytes", limit)
	}
	return strings.ToValidUTF8(string(data), "�"), err
}

// execClient is a client of the ECA protocol that renders to a terminal.
type execClient struct {
	flags          execFlags
	cwd            *workspace.Workspace
	stdout, stderr io.Writer
	conn           *jsonrpc.Conn

	prepare func(ctx context.Context) // what the prompt has to wait for: there is no next one

	finished chan string // the reason, once the turn is over
	asking   chan toolRun

	// Owned by the reading goroutine until finished is sent.
	midLine bool
	refused bool
	running map[string]bool // calls that were shown, by chat and id
}

func newExecClient(f execFlags, cwd string, stdout, stderr io.Writer) *execClient {
	return &execClient{
		flags: f, cwd: workspace.New(cwd), stdout: stdout, stderr: stderr,
		finished: make(chan string, 1), asking: make(chan toolRun, 16), running: map[string]bool{},
	}
}

// toolRun is a toolCallRun that waits for a decision.
type toolRun struct {
	ChatID  string
	ID      string          `json:"id"`
	Summary string          `json:"summary"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"arguments"`
	Details struct {
		Type string `json:"type"`
		Path string `json:"path"`
		Diff string `json:"diff"`
	} `json:"details"`
}

// turn runs one prompt to its end.
func (c *execClient) turn(ctx, alive context.Context, prompt, extra string) (int, error) {
	root := c.cwd.Roots()[0]
	err := c.conn.Call(alive, "initialize", map[string]any{
		"processId": nil, "clientInfo": map[string]string{"name": "eca exec", "version": version},
		"capabilities":     map[string]any{"codeAssistant": map[string]any{"chat": true}},
		"workspaceFolders": []map[string]string{{"uri": workspace.ToURI(root), "name": filepath.Base(root)}},
	}, nil)
	if err != nil {
		return exitFailed, err
	}
	if err := c.conn.Notify(alive, "initialized", map[string]any{}); err != nil {
		return exitFailed, err
	}
	c.prepare(ctx)
	params := map[string]any{"message": prompt}
	for key, v := range map[string]string{"model": c.flags.model, "agent": c.flags.agent, "chatId": c.flags.chat} {
		if v != "" {
			params[key] = v
		}
	}
	if extra != "" {
		params["contexts"] = []map[string]string{{"type": "text", "label": "stdin", "content": extra}}
	}
	var res struct{ ChatID, Status string }
	if err := c.conn.Call(alive, "chat/prompt", params, &res); err != nil {
		return exitFailed, err
	}
	interrupted := false
	// Any other refusal is explained by content that is on its way.
	if res.Status == "error" && !chat.ValidID(res.ChatID) {
		return exitFailed, fmt.Errorf("the prompt was refused: %q is no valid chat id", c.flags.chat)
	}
	for {
		select {
		case call := <-c.asking:
			approve := c.decide(ctx, call)
			method := "chat/toolCallApprove"
			if !approve {
				method = "chat/toolCallReject"
			}
			_ = c.conn.Notify(alive, method, map[string]any{"chatId": call.ChatID, "toolCallId": call.ID, "goOn": true, "auto": c.flags.approve == "all"})
		case <-ctx.Done():
			interrupted = true
			ctx = alive
			_ = c.conn.Notify(alive, "chat/promptStop", map[string]string{"chatId": res.ChatID})
		case <-c.conn.Done():
			return exitFailed, errors.New("the daemon ended unexpectedly")
		case reason := <-c.finished:
			return c.end(res.ChatID, reason, interrupted), nil
		}
	}
}

func (c *execClient) end(chatID, reason string, interrupted bool) int {
	if !c.flags.json {
		if c.midLine {
			fmt.Fprintln(c.stdout)
		}
		fmt.Fprintf(c.stderr, "Continue with: eca exec --chat %s \"...\"\n", chatID)
	}
	switch {
	case interrupted:
		return exitInterrupted
	case reason == "failed", reason == "blocked", reason == "loop":
		return exitFailed
	case c.refused:
		return exitRefused
	}
	return 0
}

// handle receives the server's notifications.
func (c *execClient) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	if req.IsCall {
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	if c.flags.json {
		line, err := json.Marshal(map[string]any{"method": req.Method, "params": req.Params})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(c.stdout, "%s\n", line)
	}
	switch req.Method {
	case "$/showMessage":
		var p struct{ Message string }
		if json.Unmarshal(req.Params, &p) == nil && !c.flags.json {
			c.note(p.Message)
		}
	case "chat/contentReceived":
		var p struct {
			ChatID, ParentChatID, Role string
			Content                    json.RawMessage
		}
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		return nil, c.content(p.ChatID, p.Role, p.ParentChatID != "", p.Content)
	}
	return nil, nil
}

// content renders one content. Of subagents only their calls are shown: what they say is
// for the model.
func (c *execClient) content(chatID, role string, subagent bool, raw json.RawMessage) error {
	var v struct {
		Type, ID, Text, State, Reason, Summary, Name string
		ManualApproval, Error                        bool
		Outputs                                      []struct{ Text string }
		Details                                      struct{ Type, Path string }
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if v.Details.Type == "fileChange" { // the summary leaves to clients to name it
		v.Summary += " " + filepath.Base(v.Details.Path)
	}
	switch v.Type {
	case "text":
		switch {
		case c.flags.json || subagent || role == "user":
		case role == "assistant":
			fmt.Fprint(c.stdout, visible.Text(v.Text))
			c.midLine = !strings.HasSuffix(v.Text, "\n")
		default:
			c.note(strings.TrimSpace(v.Text))
		}
	case "toolCallRun":
		if v.ManualApproval {
			call := toolRun{ChatID: chatID}
			if err := json.Unmarshal(raw, &call); err != nil {
				return err
			}
			call.Summary = v.Summary
			c.asking <- call
		}
	case "toolCallRunning":
		if call := chatID + " " + v.ID; !c.running[call] { // a subagent's comes with each step
			c.running[call] = true
			c.activity("· " + v.Summary)
		}
	case "toolCalled":
		if v.Error && len(v.Outputs) > 0 {
			c.activity("  failed: " + firstLine(v.Outputs[0].Text))
		}
	case "toolCallRejected":
		c.refused = true
		c.activity("· refused: " + v.Summary)
	case "progress":
		if v.State == "running" && strings.HasPrefix(v.Text, "⏳") {
			c.activity(v.Text)
		}
		if v.State == "finished" {
			c.finished <- v.Reason
		}
	}
	return nil
}

func (c *execClient) activity(line string) {
	if !c.flags.json {
		c.note(line)
	}
}

// note writes a line of its own to stderr.
func (c *execClient) note(line string) {
	if c.flags.json || line == "" {
		return
	}
	if c.midLine {
		fmt.Fprintln(c.stdout)
		c.midLine = false
	}
	fmt.Fprintln(c.stderr, visible.Text(line))
}

// decide about a call that needs approval.
func (c *execClient) decide(ctx context.Context, call toolRun) bool {
	switch c.flags.approve {
	case "all":
		return true
	case "none":
		return false
	case "auto-edit":
		if call.Details.Type == "fileChange" && c.cwd.Contains(call.Details.Path) {
			return true
		}
	}
	return askTerminal(ctx, call)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}
