package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// execClient is a client of the ECA protocol that renders to a terminal.
type execClient struct {
	flags      execFlags
	configFile string // from --config-file
	cwd        *workspace.Workspace
	conn       *jsonrpc.Conn
	daemon     *daemon.Daemon

	finished       chan turnEnd  // receives the end of each turn
	noticesArrived chan struct{} // closed after the first notices about the configuration
	approvals      chan pendingCall
	questions      chan commandQuestion
	needed         execNeeds
	noticesOnce    sync.Once

	mu sync.Mutex // guards the fields below
	execScreen
	execLines
	execCalls
	checked      bool            // the flags and the configuration have been checked; see check
	earlyNotices []string        // notices that arrived before the check; its error replaces them
	answer       strings.Builder // the text since the last tool call
	notice       string          // the last notice of eca itself
	usage        execUsage       // as last reported
	silence      modelSilence
}

// execLines is the state of the lines that a run with --json writes.
type execLines struct {
	startWritten  bool              // the first line is written
	resultWritten bool              // the last line is written
	earlyLines    []json.RawMessage // lines that arrived before the first one was written
}

// execCalls are the tool calls of a run, by chat and id.
type execCalls struct {
	calls                      map[string]*callTimer     // the calls that were shown
	permissions                map[string]callPermission // the decisions about them
	clientReasons, hookReasons map[string]string         // why this client, or which hook with which reason, refused calls
	refused                    []refusal                 // calls that were not allowed to run
	sandboxStops               sandboxStops              // the accesses that the sandbox denied to commands
	chat, fork                 string                    // ids of the chat of this run, and of the fork that it made
}

// execNeeds collects the options that would have let refused calls run. It belongs to the goroutine
// that waits for the turn.
type execNeeds struct {
	options  map[string]bool // values of --approve, allowByRule, changeRule, changeHook
	commands bool            // one of these calls was a shell command
	outside  bool            // a refused call asked to leave the sandbox
}

// execUsage is the usage of a chat.
type execUsage struct {
	Tokens int64  `json:"sessionTokens"`
	Last   string `json:"lastMessageCost"`
	Cost   string `json:"sessionCost"`
}

func newExecClient(f execFlags, folder string, stdout, stderr io.Writer) *execClient {
	file, isFile := usage.File(stdout)
	return &execClient{
		flags: f, cwd: workspace.New(folder), finished: make(chan turnEnd, 1), noticesArrived: make(chan struct{}), approvals: make(chan pendingCall, 16), questions: make(chan commandQuestion),
		needed: execNeeds{options: map[string]bool{}},
		execScreen: execScreen{
			stdout: stdout, stderr: stderr, json: f.json, document: f.schema != "",
			oneOutput: isFile && (term.IsTerminal(int(file.Fd())) || sameOutput(file, stderr)),
		},
		execCalls: execCalls{calls: map[string]*callTimer{}, clientReasons: map[string]string{}, hookReasons: map[string]string{}, permissions: map[string]callPermission{}},
	}
}

// pendingCall is a toolCallRun that waits for a decision.
type pendingCall struct {
	ChatID     string
	ID         string          `json:"id"`
	Summary    string          `json:"summary"`
	Name       string          `json:"name"`
	Server     string          `json:"server"`
	Args       json.RawMessage `json:"arguments"`
	Permission struct {
		Rule          string `json:"rule"`
		Reason        string `json:"reason"`
		NotRemembered string `json:"notRemembered"`
	} `json:"permission"`
	Details struct {
		Type     string `json:"type"`
		Path     string `json:"path"`
		Diff     string `json:"diff"`
		Commands []struct {
			ApprovalKey string `json:"approvalKey"`
			Remembered  bool   `json:"remembered"`
		} `json:"commands"`
	} `json:"details"`
}

// run runs the turn. If the answer does not match the required schema, it asks once for another one.
func (c *execClient) run(ctx, serverCtx context.Context, in *execInput) (int, error) {
	if err := c.open(ctx, serverCtx); err != nil {
		return exitFailed, err
	}
	chatID, err := c.check(ctx, in.prompt)
	if err != nil { // without the early notices: err names the cause, and they may not all have arrived
		return exitFailed, err
	}
	c.showEarlyNotices()
	if err = c.startServers(ctx); err != nil {
		return exitFailed, err
	}
	began := time.Now()
	end, err := c.turn(ctx, serverCtx, chatID, in.prompt, in.contexts)
	if err != nil {
		return exitFailed, err
	}
	text := c.answerText()
	if in.schema != nil && end.code() == 0 {
		doc, wrong := in.schema.check(text)
		if wrong != nil {
			c.note("The answer does not match " + in.schema.path + "; asking once more: " + wrong.Error())
			if end, err = c.turn(ctx, serverCtx, chatID, in.schema.repair(wrong), nil); err != nil {
				return exitFailed, err
			}
			if text = c.answerText(); end.code() == 0 {
				doc, wrong = in.schema.check(text)
			}
		}
		if wrong != nil {
			err = fmt.Errorf("the answer does not match %s: %w", in.schema.path, wrong)
		} else {
			text = doc
		}
	}
	if !end.interrupted && !c.flags.ephemeral {
		c.awaitTitle(ctx, chatID, began)
	}
	awaitNotices(ctx, c.daemon, c.noticesArrived)
	return c.finish(chatID, text, end, in.schema != nil, err)
}

// abort writes the last line of JSON for an error before the end of a turn.
func (c *execClient) abort(failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flags.json && !c.resultWritten {
		c.resultWritten = true
		writeAbortedResult(c.stdout, exitFailed, failed)
	}
}

// open initializes the connection to the server, and loads agents and models.
func (c *execClient) open(ctx, serverCtx context.Context) error {
	err := c.conn.Call(serverCtx, "initialize", map[string]any{
		"processId": nil, "clientInfo": map[string]string{"name": "eca exec", "version": version},
		"capabilities":          map[string]any{"codeAssistant": map[string]any{"chat": true, "chatCapabilities": map[string]any{"askQuestion": c.flags.takesQuestions()}}},
		"workspaceFolders":      []map[string]string{{"uri": workspace.ToURI(c.root()), "name": filepath.Base(c.root())}},
		"initializationOptions": map[string]any{},
	}, nil)
	if err != nil {
		return err
	}
	if err := c.conn.Notify(serverCtx, "initialized", map[string]any{}); err != nil {
		return err
	}
	c.prepare(ctx)
	return nil
}

// turn sends a prompt and waits for the end of the turn.
func (c *execClient) turn(ctx, serverCtx context.Context, chatID, prompt string, contexts []map[string]string) (turnEnd, error) {
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
	c.chat = chatID
	c.answer.Reset()
	c.mu.Unlock()
	var res struct{ ChatID, Model, Status string }
	if err := c.conn.Call(serverCtx, "chat/prompt", params, &res); err != nil {
		return turnEnd{}, err
	}
	if res.Status == "error" { // no turn began, so that no model has the prompt
		res.Model = ""
	}
	c.writeStart(chatID, res.Model)
	end := turnEnd{model: res.Model}
	silenceCheck := time.NewTimer(silentAfter)
	defer silenceCheck.Stop()
	for {
		select {
		case <-silenceCheck.C:
			silenceCheck.Reset(c.reportSilence(res.Model))
		case call := <-c.approvals:
			d := c.decide(ctx, call)
			if ctx.Err() != nil {
				continue // Ctrl-C is not an answer: the code below stops the prompt, and the call with it
			}
			method := "chat/toolCallApprove"
			if !d.approve {
				method = "chat/toolCallReject"
			}
			c.mu.Lock()
			c.clientReasons[call.ChatID+" "+call.ID] = d.why
			c.mu.Unlock()
			_ = c.conn.Notify(serverCtx, method, map[string]any{"chatId": call.ChatID, "toolCallId": call.ID, "goOn": true, "auto": d.auto, "unasked": d.unasked, "save": d.save})
		case q := <-c.questions:
			q.answer <- askAboutCommand(ctx, q)
		case <-ctx.Done():
			end.interrupted = true
			ctx = serverCtx
			_ = c.conn.Notify(serverCtx, "chat/promptStop", map[string]string{"chatId": chatID})
		case <-c.conn.Done():
			return end, errors.New("the daemon ended unexpectedly")
		case ended := <-c.finished:
			end.reason, end.incomplete = ended.reason, ended.incomplete
			c.mu.Lock()
			end.refused = len(c.refused) > 0
			c.mu.Unlock()
			return end, nil
		}
	}
}

// answerText returns the answer: the text since the last tool call.
func (c *execClient) answerText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.answer.String())
}

// writeStart writes the first line of JSON, and the lines that had to wait for it.
func (c *execClient) writeStart(chatID, model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.flags.json || c.startWritten {
		return
	}
	c.startWritten = true
	cfg := c.daemon.Config()
	c.writeLine(map[string]any{
		"type": "start", "chatId": chatID, "model": model, "agent": cfg.AgentOrDefault(c.flags.agent), "folder": c.root(), "version": version,
	})
	for _, line := range c.earlyLines {
		c.writeLine(line)
	}
	c.earlyLines = nil
}

// writeLine writes a line of JSON; c.mu is held.
func (c *execClient) writeLine(v any) { writeLine(c.stdout, v) }

// finish writes the remaining output. failed is the reason why a complete answer cannot be used, or nil.
func (c *execClient) finish(chatID, text string, end turnEnd, document bool, failed error) (int, error) {
	code, reason := end.code(), end.exitReason()
	if failed != nil {
		code = exitFailed
		if reason == "done" {
			reason = "failed"
		}
	}
	if c.flags.output != "" && text != "" && (code == 0 || code == exitRefused) {
		err := safeio.WriteOutput(c.flags.output, func(w io.Writer) error {
			_, err := io.WriteString(w, text+"\n")
			return err
		})
		if err != nil {
			failed, code = errors.Join(failed, fmt.Errorf("--output: %w", err)), exitFailed
		}
	}
	unsaved := c.daemon.Engine().Unsaved(chatID)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flags.json {
		result := map[string]any{
			"type": "result", "text": text, "exitReason": reason, "exitCode": code, "chatId": chatID, "model": end.model,
			"usage": map[string]any{"tokens": c.usage.Tokens}, "kept": !unsaved && !c.flags.ephemeral,
		}
		if c.usage.Cost != "" {
			result["cost"] = json.Number(c.usage.Cost)
			if cost, err := c.daemon.Cost(context.Background(), chatID); err == nil && cost > 0 { // not rounded to cents
				result["cost"] = cost
			}
		}
		if len(c.refused) > 0 {
			result["refused"] = c.refused
		}
		switch {
		case failed != nil:
			result["error"] = failed.Error()
		case (code == exitFailed || code == exitBudget) && c.notice != "":
			result["error"] = c.notice
		}
		c.resultWritten = true
		c.writeLine(result)
		return code, failed
	}
	if document && failed == nil && code != exitFailed {
		fmt.Fprintln(c.stdout, text)
	}
	c.endLine()
	for _, hint := range c.remedies() {
		fmt.Fprintln(c.stderr, hint)
	}
	for _, job := range c.daemon.Jobs() {
		if job.Status == tools.JobRunning {
			fmt.Fprintf(c.stderr, "The background job %s ended with eca exec: %s\n", job.Label, job.Summary)
		}
	}
	switch {
	case c.flags.ephemeral:
	case unsaved: // a notice has reported that
	default:
		fmt.Fprintln(c.stderr, c.flags.continuation("Continue with", c.configFile, chatID))
		if c.fork != "" {
			fmt.Fprintln(c.stderr, c.flags.continuation("Continue the fork with", c.configFile, c.fork))
		}
	}
	return code, failed
}

// handle receives the server's notifications.
func (c *execClient) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch {
	case req.Method == "chat/askQuestion":
		return c.question(req)
	case req.IsCall:
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.writeNotification(req); err != nil {
		return nil, err
	}
	switch req.Method {
	case "$/showMessage":
		var p struct{ Message string }
		switch {
		case json.Unmarshal(req.Params, &p) != nil || c.repeatsUnavailable(p.Message):
		case !c.checked:
			c.earlyNotices = append(c.earlyNotices, p.Message)
		default:
			c.noteLocked(p.Message)
		}
	case "jobs/updated": // the first one follows these notices
		c.noticesOnce.Do(func() { close(c.noticesArrived) })
	case "chat/opened":
		var p struct{ ChatID string }
		if err := json.Unmarshal(req.Params, &p); err == nil && p.ChatID != c.chat {
			c.fork = p.ChatID
		}
	case "chat/contentReceived":
		var p struct {
			ChatID, ParentChatID, Role string
			Content                    json.RawMessage
		}
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		if c.fork != "" && (p.ChatID == c.fork || p.ParentChatID == c.fork) { // its answers are not those of this run
			return nil, nil
		}
		return nil, c.content(p.ChatID, p.Role, p.ParentChatID != "", p.Content)
	}
	return nil, nil
}

// writeNotification prints messages and notifications about chats as JSON, with --json. Other notifications,
// such as the server's state at its start, are for editors.
func (c *execClient) writeNotification(req *jsonrpc.Request) error {
	if !c.flags.json || c.resultWritten || req.Method != "$/showMessage" && !strings.HasPrefix(req.Method, "chat/") {
		return nil
	}
	line, err := json.Marshal(map[string]any{"method": req.Method, "params": req.Params})
	if err != nil {
		return err
	}
	if !c.startWritten {
		c.earlyLines = append(c.earlyLines, line)
		return nil
	}
	c.writeLine(json.RawMessage(line))
	return nil
}

// content renders one content of a chat. For subagents it shows only their calls, because their text
// is for the model.
func (c *execClient) content(chatID, role string, subagent bool, raw json.RawMessage) error {
	var v execContent
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	if !subagent {
		c.silence.observe(v, time.Now())
	}
	call := chatID + " " + v.ID
	switch v.Type {
	case "text":
		switch {
		case subagent:
		case role == "user": // a prompt, or the text with which a hook continues the turn
			c.answer.Reset()
			c.paragraph()
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
		c.permissions[call] = v.Permission
		if v.ManualApproval {
			run := pendingCall{ChatID: chatID}
			if err := json.Unmarshal(raw, &run); err != nil {
				return err
			}
			run.Summary = v.label(c.root())
			c.approvals <- run
		}
	case "toolCallRunning":
		if c.calls[call] == nil { // the call of a subagent is sent again with each of its steps
			c.calls[call] = &callTimer{label: v.label(c.root()), started: time.Now(), notifyAt: silentAfter}
			c.noteLocked("· " + c.calls[call].label)
		}
	case "toolCalled":
		switch {
		case v.Error != "" && c.permissions[call].denies(): // the model called a tool that it must not use
			c.recordRefusal(call, v)
		case v.Error != "":
			c.noteFailure(v)
		}
		c.noteSandbox(v)
		c.calls[call].markEnded()
	case "toolCallRejected":
		switch {
		case v.Reason != "userStop" && v.Reason != "userPromptStop":
			c.recordRefusal(call, v)
		case c.calls[call] != nil:
			c.noteLocked("· stopped: " + v.label(c.root()))
		default:
			c.noteLocked("· interrupted: " + v.label(c.root()))
		}
		c.calls[call].markEnded()
	case "hookActionStarted":
		c.calls["hook "+v.ID] = &callTimer{label: "the hook " + v.Name, started: time.Now(), notifyAt: silentAfter}
	case "hookActionFinished":
		c.hookFinished(chatID, v)
	case "usage":
		if !subagent {
			return json.Unmarshal(raw, &c.usage)
		}
	case "progress":
		if v.State == "running" && strings.HasPrefix(v.Text, "⏳") {
			c.noteLocked(v.Text)
		}
		if v.State == "finished" && !subagent {
			c.finished <- turnEnd{reason: v.Reason, incomplete: event.Incomplete(v.Incomplete)}
		}
	}
	return nil
}
