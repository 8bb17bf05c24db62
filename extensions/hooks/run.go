package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
)

// Call is an occurrence of an event.
type Call struct {
	Event Event
	Roots []string // workspace folders; without any, no hooks run
	// Fields are the input fields of the event, in addition to those that every script gets; see
	// eca-features.md 18.2.
	Fields  map[string]any
	Tool    *Tool  // for events of a tool
	Trigger string // for a compaction: manual or auto
}

// Tool is the tool call that hooks run for.
type Tool struct {
	CallID       string
	Server, Name string
	Arguments    json.RawMessage
	Failed       bool // it ran and failed
}

// Outcome is the combined result of all hooks of an event.
type Outcome struct {
	Stop    *Stop     // end the turn; nil if no hook asked for it
	Blocked []Blocked // hooks that exited with code 2

	Context   []string        // additionalContext
	Prompt    *string         // replacedPrompt
	PromptBy  string          // the hook that replaced the prompt
	FollowUps []string        // followUp
	Input     json.RawMessage // the tool's arguments with all updates; nil without updates
	InputBy   string          // the last hook that updated the arguments
	Approval  string          // the strictest decision: deny, ask or allow; empty without a decision
	Approver  string          // the hook that made this decision
	Output    *string         // replacedOutput, or the placeholder for a hidden output
}

// Stop is the result of a hook that printed continue: false.
type Stop struct{ Hook, Reason string }

// Notice is the message for the user.
func (s Stop) Notice() string {
	text := "Turn stopped by hook '" + s.Hook + "'"
	if s.Reason == "" {
		return text + "."
	}
	return text + ": " + s.Reason
}

// Blocked is a hook that exited with the intervention code. Text is its stderr.
type Blocked struct {
	Hook, Text string
}

// Action identifies an action of a hook that runs.
type Action struct {
	ID     string // of this run
	Name   string
	Type   string // shell
	CallID string // of the tool call, if it is about one
}

// Report is how an action ended.
type Report struct {
	Status int
	Output string
	Error  string
	Failed bool // it failed, so it may not have prevented or changed something that it should have
}

// Observer receives what the user should see. It may be nil.
type Observer interface {
	Started(a Action)
	Finished(a Action, r Report)
	// Said passes on a message to the user.
	Said(text string)
}

// interventionCode is the exit code with which a script intervenes.
const interventionCode = 2

// hiddenOutput replaces a tool's output that a script hid without giving a reason.
const hiddenOutput = "[Tool output hidden by hook]"

// Run runs the hooks of an event, sorted by name, and returns their combined result. When ctx ends,
// running scripts are killed.
func (s *Set) Run(ctx context.Context, c Call, o Observer) Outcome {
	var out Outcome
	if !s.Any(c.Event) || len(c.Roots) == 0 {
		return out
	}
	c.Fields = maps.Clone(c.Fields)
	if c.Fields == nil {
		c.Fields = map[string]any{}
	}
	if c.Tool != nil {
		tool := *c.Tool
		c.Tool = &tool
	}
	for _, h := range s.list[c.Event] {
		if !h.appliesTo(c) {
			continue
		}
		for _, a := range h.actions {
			s.runAction(ctx, h, a, &c, &out, o)
			if out.Stop != nil || ctx.Err() != nil {
				return out
			}
		}
	}
	return out
}

func (h hook) appliesTo(c Call) bool {
	if c.Tool != nil && c.Tool.Failed && !h.RunOnError {
		return false
	}
	return h.matcher.matches(c)
}

// runAction runs one script and adds its result to out and c, which the next script sees.
func (s *Set) runAction(ctx context.Context, h hook, a action, c *Call, out *Outcome, o Observer) {
	shown := Action{ID: s.opts.NewID(), Name: a.name, Type: a.Type}
	if c.Tool != nil {
		shown.CallID = c.Tool.CallID
	}
	if o != nil && h.visible {
		o.Started(shown)
	}
	r := s.run(ctx, a, c.Roots[0], s.input(h, a, *c))
	report := Report{Status: r.status, Output: r.stdout, Error: join(r.problem, r.stderr)}
	answer, reason, blocked := output{}, "", false
	if h.Claude && r.status == 0 && r.complete {
		answer, reason, blocked = c.parseClaudeOutput(r.stdout)
	}
	switch {
	case blocked:
		report.Output = reason
		out.block(c, Blocked{Hook: a.name, Text: reason})
	case r.status == interventionCode && h.Claude && c.Event == PostToolCall:
		// For this event, the reason is added to the tool's result.
		out.Context = append(out.Context, r.stderr)
	case r.status == interventionCode:
		out.block(c, Blocked{Hook: a.name, Text: r.stderr})
	case r.status == 0 && !r.complete:
		report.Error = join("its output is too long to be used", r.stderr)
	case r.status == 0:
		parsed, ok := answer, h.Claude
		if !ok {
			parsed, ok = parse(r.stdout)
		}
		if ok {
			answer = parsed.fieldsFor(c.Event)
			report.Output, report.Error = answer.effects(), join(strings.Join(append(slices.Clone(answer.problems), answer.notes...), "\n"), r.stderr)
			out.apply(c, a.name, answer)
		}
	}
	cause := failure(r, answer, h.looksLikeAnswer(r.stdout))
	if report.Failed = r.status != interventionCode && cause != "" && ctx.Err() == nil && !foundNothing(a, c.Roots[0], r); report.Failed {
		report.Error = cmp.Or(report.Error, cause)
		out.guardCall(*c, a.name, report.Error, r.status == 0 || h.mayDeny(r.stdout), o)
	}
	s.guardResult(h, a, c, out, r, answer, o)
	level := slog.LevelWarn
	if o == nil { // the failure is not shown elsewhere
		level = slog.LevelError
	}
	switch {
	case report.Failed:
		s.opts.Log.Log(ctx, level, "hook failed", "hook", a.name, "event", c.Event, "status", r.status, "err", forDisplay(report.Error))
	case o == nil && ctx.Err() != nil:
		s.opts.Log.Error("hook was stopped because eca is shutting down", "hook", a.name, "event", c.Event)
	}
	if o == nil {
		return
	}
	hiddenFailure := !h.visible && report.Failed && c.Event != PostToolCall // guardResult has already reported that case
	if hiddenFailure {
		o.Started(shown)
	}
	if h.visible || hiddenFailure {
		if answer.SuppressOutput && !report.Failed {
			report.Output, report.Error = "", ""
		}
		report.Output, report.Error = forDisplay(report.Output), forDisplay(report.Error)
		o.Finished(shown, report)
	}
	if answer.SystemMessage != "" {
		o.Said("Hook '" + a.name + "': " + forDisplay(answer.SystemMessage))
	}
}

func join(a, b string) string { return strings.Trim(a+"\n"+b, "\n") }

// input returns the JSON that a script reads.
func (s *Set) input(h hook, a action, c Call) []byte {
	fields := maps.Clone(c.Fields)
	maps.Copy(fields, map[string]any{
		"hook_name": a.name, "hook_type": string(h.event), "workspaces": c.Roots, "cwd": c.Roots[0],
		"db_cache_path": s.opts.Store(), "session_id": s.opts.Session(c.Roots), "eca_executable": s.opts.Executable,
	})
	if c.Tool != nil {
		fields["tool_call_id"], fields["server"], fields["tool_name"] = c.Tool.CallID, c.Tool.Server, c.Tool.Name
		fields["tool_input"] = c.Tool.Arguments
	}
	if h.Claude {
		claudeFields(fields, c)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		s.opts.Log.Error("cannot encode the input of a hook", "hook", a.name, "err", err)
	}
	return raw
}

// block records an intervention.
func (out *Outcome) block(c *Call, b Blocked) {
	switch c.Event {
	case PreRequest, PreToolCall, PreCompact:
		out.Blocked = append(out.Blocked, b)
	case PostToolCall:
		text := b.Text
		if text == "" {
			text = hiddenOutput
		}
		out.Output = &text
		c.Fields["tool_response"] = text
	case PostRequest, SubagentPostRequest:
		if b.Text != "" {
			out.FollowUps = append(out.FollowUps, b.Text)
		}
	}
}

// apply records the result of a script.
func (out *Outcome) apply(c *Call, name string, o output) {
	if o.Stop {
		out.Stop = &Stop{Hook: name, Reason: o.StopReason}
	}
	if o.AdditionalContext != "" {
		out.Context = append(out.Context, o.AdditionalContext)
	}
	if o.FollowUp != "" {
		out.FollowUps = append(out.FollowUps, o.FollowUp)
	}
	if o.ReplacedPrompt != nil {
		out.Prompt, out.PromptBy = o.ReplacedPrompt, name
		c.Fields["prompt"] = *o.ReplacedPrompt
	}
	if o.ReplacedOutput != nil {
		out.Output = o.ReplacedOutput
		c.Fields["tool_response"] = *o.ReplacedOutput
	}
	if o.UpdatedInput != nil {
		var args map[string]json.RawMessage
		_ = json.Unmarshal(c.Tool.Arguments, &args)
		if args == nil {
			args = map[string]json.RawMessage{}
		}
		maps.Copy(args, o.UpdatedInput)
		if raw, err := json.Marshal(args); err == nil {
			out.Input, out.InputBy, c.Tool.Arguments = raw, name, raw
		}
	}
	if strictness(o.Approval) > strictness(out.Approval) {
		out.Approval, out.Approver = o.Approval, name
	}
}

func strictness(approval string) int {
	switch approval {
	case "allow":
		return 1
	case "ask":
		return 2
	case "deny":
		return 3
	}
	return 0
}
