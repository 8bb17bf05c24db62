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
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// execClient is a client of the ECA protocol that renders to a terminal.
type execClient struct {
	flags          execFlags
	configFile     string // the flag's
	cwd            *workspace.Workspace
	stdout, stderr io.Writer
	conn           *jsonrpc.Conn
	daemon         *daemon.Daemon
	terminal       bool // stdout is one

	finished chan string // the reason, once the turn is over
	asking   chan toolRun

	ways           map[string]bool // that would have let calls run which needed a terminal; of the waiting goroutine
	unaskedOutside bool            // a call needed one to leave the sandbox; of the waiting goroutine

	mu      sync.Mutex           // guards what follows
	midLine bool                 // the answer stands in a line that has not ended
	printed bool                 // a part of the answer is out
	gap     bool                 // a blank line belongs before the next part
	refused []refusal            // calls that were not allowed to run
	why     map[string]string    // calls were refused here, by chat and id
	stopped bool                 // the sandbox stopped a command
	calls   map[string]*toolWait // calls that were shown, by chat and id
	answer  strings.Builder      // the text since the last tool call
	notice  string               // what eca itself said last
	ended   bool                 // the last line of JSON is out
	usage   execUsage            // what was told of it last
	begun   bool                 // the first line of JSON is out
	early   []json.RawMessage    // lines of JSON from before
	wait    modelWait
}

// execUsage is what a chat has used.
type execUsage struct {
	Tokens int64  `json:"sessionTokens"`
	Last   string `json:"lastMessageCost"`
	Cost   string `json:"sessionCost"`
}

func newExecClient(f execFlags, folder string, stdout, stderr io.Writer) *execClient {
	file, isFile := stdout.(*os.File)
	return &execClient{
		flags: f, cwd: workspace.New(folder), stdout: stdout, stderr: stderr, terminal: isFile && term.IsTerminal(int(file.Fd())),
		finished: make(chan string, 1), asking: make(chan toolRun, 16), calls: map[string]*toolWait{}, ways: map[string]bool{}, why: map[string]string{},
	}
}

// refusal is a call that was not allowed to run, for scripts.
type refusal struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// toolRun is a toolCallRun that waits for a decision.
type toolRun struct {
	ChatID     string
	ID         string          `json:"id"`
	Summary    string          `json:"summary"`
	Name       string          `json:"name"`
	Server     string          `json:"server"`
	Args       json.RawMessage `json:"arguments"`
	Permission struct {
		Rule   string `json:"rule"`
		Reason string `json:"reason"`
	} `json:"permission"`
	Details struct {
		Type     string `json:"type"`
		Path     string `json:"path"`
		Diff     string `json:"diff"`
		Commands []struct {
			Name        string   `json:"command"`
			Args        []string `json:"args"`
			ApprovalKey string   `json:"approvalKey"`
			Remembered  bool     `json:"remembered"`
		} `json:"commands"`
		Effects []struct {
			Command string `json:"command"`
			Effect  string `json:"effect"`
		} `json:"effects"`
	} `json:"details"`
}

// run runs the prompt to its end, and once more if the answer has to match a schema and
// does not.
func (c *execClient) run(ctx, alive context.Context, in *execInput) (int, error) {
	if err := c.open(ctx, alive); err != nil {
		return exitFailed, err
	}
	chatID, err := c.check(ctx, in.prompt)
	if err != nil {
		return exitFailed, err
	}
	c.startServers(ctx)
	end, err := c.turn(ctx, alive, chatID, in.prompt, in.contexts)
	if err != nil {
		return exitFailed, err
	}
	text := c.said()
	if in.schema != nil && end.code() == 0 {
		doc, wrong := in.schema.check(text)
		if wrong != nil {
			c.note("The answer does not match " + in.schema.path + "; asking once more: " + wrong.Error())
			if end, err = c.turn(ctx, alive, chatID, in.schema.repair(wrong), nil); err != nil {
				return exitFailed, err
			}
			if text = c.said(); end.code() == 0 {
				doc, wrong = in.schema.check(text)
			}
		}
		if wrong != nil {
			err = fmt.Errorf("the answer does not match %s: %w", in.schema.path, wrong)
		} else {
			text = doc
		}
	}
	return c.end(chatID, text, end, in.schema != nil, err)
}

// abort writes the last line of JSON for what failed before a turn had its end.
func (c *execClient) abort(failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flags.json && !c.ended {
		c.ended = true
		c.line(map[string]any{"type": "result", "text": "", "exitReason": "failed", "exitCode": exitFailed, "error": failed.Error()})
	}
}

// open begins the conversation with the server.
func (c *execClient) open(ctx, alive context.Context) error {
	err := c.conn.Call(alive, "initialize", map[string]any{
		"processId": nil, "clientInfo": map[string]string{"name": "eca exec", "version": version},
		"capabilities":          map[string]any{"codeAssistant": map[string]any{"chat": true}},
		"workspaceFolders":      []map[string]string{{"uri": workspace.ToURI(c.root()), "name": filepath.Base(c.root())}},
		"initializationOptions": map[string]any{},
	}, nil)
	if err != nil {
		return err
	}
	if err := c.conn.Notify(alive, "initialized", map[string]any{}); err != nil {
		return err
	}
	c.prepare(ctx)
	return nil
}

// turnEnd is how a turn ended.
type turnEnd struct {
	reason      string
	model       string
	interrupted bool
	refused     bool
}

// code is the exit code for it.
func (e turnEnd) code() int {
	switch {
	case e.interrupted:
		return exitInterrupted
	case e.reason == "failed", e.reason == "blocked", e.reason == "loop":
		return exitFailed
	case e.refused:
		return exitRefused
	}
	return 0
}

// turn prompts and waits for the end of the turn.
func (c *execClient) turn(ctx, alive context.Context, chatID, prompt string, contexts []map[string]string) (turnEnd, error) {
	params := map[string]any{"message": prompt, "chatId": chatID}
	for key, v := range map[string]string{"model": c.flags.model, "agent": c.flags.agent} {
		if v != "" {
			params[key] = v
		}
	}
	if contexts != nil {
		params["contexts"] = contexts
	}
	c.mu.Lock()
	c.answer.Reset()
	c.mu.Unlock()
	var res struct{ ChatID, Model, Status string }
	if err := c.conn.Call(alive, "chat/prompt", params, &res); err != nil {
		return turnEnd{}, err
	}
	c.begin(chatID, res.Model)
	end := turnEnd{model: res.Model}
	look := time.NewTimer(silentAfter)
	defer look.Stop()
	for {
		select {
		case <-look.C:
			look.Reset(c.lookForSilence(res.Model))
		case call := <-c.asking:
			d := c.decide(ctx, call)
			method := "chat/toolCallApprove"
			if !d.approve {
				method = "chat/toolCallReject"
			}
			c.mu.Lock()
			c.why[call.ChatID+" "+call.ID] = d.why
			c.mu.Unlock()
			_ = c.conn.Notify(alive, method, map[string]any{"chatId": call.ChatID, "toolCallId": call.ID, "goOn": true, "auto": d.auto, "unasked": d.unasked, "save": d.save})
		case <-ctx.Done():
			end.interrupted = true
			ctx = alive
			_ = c.conn.Notify(alive, "chat/promptStop", map[string]string{"chatId": chatID})
		case <-c.conn.Done():
			return end, errors.New("the daemon ended unexpectedly")
		case end.reason = <-c.finished:
			c.mu.Lock()
			end.refused = len(c.refused) > 0
			c.mu.Unlock()
			return end, nil
		}
	}
}

// said is the answer: the text since the last tool call.
func (c *execClient) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.answer.String())
}

// begin writes the first line of JSON, and those that had to wait for it.
func (c *execClient) begin(chatID, model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.flags.json || c.begun {
		return
	}
	c.begun = true
	cfg := c.daemon.Config()
	c.line(map[string]any{
		"type": "start", "chatId": chatID, "model": model, "agent": cfg.AgentOrDefault(c.flags.agent), "folder": c.root(), "version": version,
	})
	for _, line := range c.early {
		c.line(line)
	}
	c.early = nil
}

// line writes a line of JSON; c.mu is held.
func (c *execClient) line(v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		fmt.Fprintf(c.stdout, "%s\n", raw)
	}
}

// end writes what is left to say; failed says why a complete answer is of no use.
func (c *execClient) end(chatID, text string, end turnEnd, document bool, failed error) (int, error) {
	code := end.code()
	if failed != nil {
		code = exitFailed
	}
	if c.flags.output != "" && text != "" && code != exitFailed {
		if err := os.WriteFile(c.flags.output, []byte(text+"\n"), 0o666); err != nil { // as a shell's redirection
			failed, code = errors.Join(failed, fmt.Errorf("--output: %w", err)), exitFailed
		}
	}
	unkept := c.daemon.Engine().Unsaved(chatID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flags.json {
		result := map[string]any{
			"type": "result", "text": text, "exitReason": end.reason, "exitCode": code, "chatId": chatID, "model": end.model,
			"usage": map[string]any{"tokens": c.usage.Tokens}, "kept": !unkept && !c.flags.ephemeral,
		}
		if c.usage.Cost != "" {
			result["cost"] = json.Number(c.usage.Cost)
		}
		if len(c.refused) > 0 {
			result["refused"] = c.refused
		}
		switch {
		case failed != nil:
			result["error"] = failed.Error()
		case code == exitFailed && c.notice != "":
			result["error"] = c.notice
		}
		c.ended = true
		c.line(result)
		return code, failed
	}
	if document && failed == nil && code != exitFailed {
		fmt.Fprintln(c.stdout, visible.Text(text))
	}
	c.endLine()
	for _, hint := range c.remedies() {
		fmt.Fprintln(c.stderr, hint)
	}
	for _, job := range c.daemon.Jobs() {
		if job.Status == tools.JobRunning {
			fmt.Fprintln(c.stderr, visible.Text(fmt.Sprintf("The background job %s ended with eca exec: %s", job.Label, job.Summary)))
		}
	}
	switch {
	case c.flags.ephemeral:
	case unkept: // a notice said so
	default:
		fmt.Fprintln(c.stderr, visible.Text(c.continuation(chatID)))
	}
	return code, failed
}

// handle receives the server's notifications.
func (c *execClient) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	if req.IsCall {
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.record(req); err != nil {
		return nil, err
	}
	switch req.Method {
	case "$/showMessage":
		var p struct{ Message string }
		if json.Unmarshal(req.Params, &p) == nil {
			c.noteLocked(p.Message)
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

// record prints notifications about chats, and messages, as JSON if that is wanted. What a
// server says of itself when it starts is for editors.
func (c *execClient) record(req *jsonrpc.Request) error {
	if !c.flags.json || req.Method != "$/showMessage" && !strings.HasPrefix(req.Method, "chat/") {
		return nil
	}
	line, err := json.Marshal(map[string]any{"method": req.Method, "params": req.Params})
	if err != nil {
		return err
	}
	if !c.begun {
		c.early = append(c.early, line)
		return nil
	}
	c.line(json.RawMessage(line))
	return nil
}

// content renders one content. Of subagents only their calls are shown: what they say is
// for the model.
func (c *execClient) content(chatID, role string, subagent bool, raw json.RawMessage) error {
	var v execContent
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if !subagent {
		c.wait.heed(v, time.Now())
	}
	call := chatID + " " + v.ID
	switch v.Type {
	case "text":
		switch {
		case subagent || role == "user":
		case role == "assistant":
			c.answer.WriteString(v.Text)
			c.print(v.Text)
		default:
			c.notice = strings.TrimSpace(v.Text)
			c.noteLocked(c.notice)
		}
	case "toolCallPrepare":
		if !subagent {
			c.answer.Reset()
			c.paragraph()
		}
	case "toolCallRun":
		if v.ManualApproval {
			run := toolRun{ChatID: chatID}
			if err := json.Unmarshal(raw, &run); err != nil {
				return err
			}
			run.Summary = v.label(c.root())
			c.asking <- run
		}
	case "toolCallRunning":
		if c.calls[call] == nil { // a subagent's comes with each step
			c.calls[call] = &toolWait{label: v.label(c.root()), since: time.Now(), next: silentAfter}
			c.noteLocked("· " + c.calls[call].label)
		}
	case "toolCalled":
		if v.Error {
			c.failure(v)
		}
		c.sandboxNotes(v)
		c.calls[call].end()
	case "toolCallRejected":
		stopped := v.Reason == "userStop" || v.Reason == "userPromptStop"
		why := c.rejection(v)
		if !stopped {
			reason := why
			if own := c.why[call]; own != "" {
				reason += ": " + own
			}
			c.refused = append(c.refused, refusal{tools.FullName(v.Server, v.Name), reason})
		}
		if stopped && c.calls[call] != nil {
			why = "stopped"
		}
		c.noteLocked("· " + why + ": " + v.label(c.root()))
		c.calls[call].end()
	case "usage":
		if !subagent {
			return json.Unmarshal(raw, &c.usage)
		}
	case "progress":
		if v.State == "running" && strings.HasPrefix(v.Text, "⏳") {
			c.noteLocked(v.Text)
		}
		if v.State == "finished" && !subagent {
			c.finished <- v.Reason
		}
	}
	return nil
}

// rejection says why a call did not run.
func (c *execClient) rejection(v execContent) string {
	switch v.Reason {
	case "userStop", "userPromptStop":
		return "interrupted"
	case "userConfigDeny":
		cfg := c.daemon.Config()
		if agent := cfg.AgentOrDefault(c.flags.agent); cfg.Agents[agent].ReadOnly {
			return "denied, since the agent " + agent + " is read-only"
		}
		return "denied by the configuration"
	case "hookRejected":
		return "denied by a hook"
	}
	return "not approved"
}

// note writes a line of its own to stderr.
func (c *execClient) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(line)
}

func (c *execClient) noteLocked(line string) {
	if c.flags.json || line == "" {
		return
	}
	if c.terminal { // elsewhere the answer goes its own way
		c.endLine()
	}
	fmt.Fprintln(c.stderr, visible.Text(line))
}
