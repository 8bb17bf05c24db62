package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"strings"
)

// Call is something that happens.
type Call struct {
	Event Event
	Roots []string // workspace folders; without one no hook runs
	// Fields are what a script reads besides what all get; see fields of each event in
	// eca-features 18.2.
	Fields  map[string]any
	Tool    *Tool  // of a tool's event
	Trigger string // of a compaction: manual or auto
}

// Tool is the call of a tool that hooks are run for.
type Tool struct {
	CallID       string
	Server, Name string
	Arguments    json.RawMessage
	Failed       bool // it has run and failed
}

// Outcome is what the hooks of an event want, all together.
type Outcome struct {
	Stop    *Stop     // end the turn; nil if no hook wants that
	Blocked []Blocked // who ended with 2

	Context   []string        // additionalContext
	Prompt    *string         // replacedPrompt
	FollowUps []string        // followUp
	Input     json.RawMessage // the tool's arguments with all that was updated; nil if nothing was
	Approval  string          // the strictest of what they say: deny, ask or allow; empty if nothing
	Output    *string         // replacedOutput, or what stands for an output that is hidden
}

// Stop is a hook that said continue: false.
type Stop struct{ Hook, Reason string }

// Notice is the message for the user.
func (s Stop) Notice() string {
	text := "Turn stopped by hook '" + s.Hook + "'"
	if s.Reason == "" {
		return text + "."
	}
	return text + ": " + s.Reason
}

// Blocked is a hook that ended with the code for an intervention. Text is what it wrote
// to stderr.
type Blocked struct {
	Hook, Text string
	Visible    bool
}

// Action names an action of a hook that runs.
type Action struct {
	ID     string // of this run
	Name   string
	Type   string // shell
	CallID string // of the tool call, if it is about one
}

// Report says how an action ended.
type Report struct {
	Status int
	Output string
	Error  string
	Failed bool // it did not do its work, so what it may forbid or change was not
}

// Observer gets what the user should see. It may be nil.
type Observer interface {
	Started(a Action)
	Finished(a Action, r Report)
	// Said passes on a message to the user.
	Said(text string)
}

// interventionCode is the exit code by which a script intervenes.
const interventionCode = 2

// hiddenOutput stands for a tool's output that a script hid without a word.
const hiddenOutput = "[Tool output hidden by hook]"

// Run runs the hooks of what happens, sorted by name, and returns what they want. When
// ctx ends they are killed.
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
		if !h.wants(c) {
			continue
		}
		for _, a := range h.actions {
			s.action(ctx, h, a, &c, &out, o)
			if out.Stop != nil || ctx.Err() != nil {
				return out
			}
		}
	}
	return out
}

func (h hook) wants(c Call) bool {
	if c.Tool != nil && c.Tool.Failed && !h.RunOnError {
		return false
	}
	return h.matcher.matches(c)
}

// action runs one script and adds what it wants to out; the next script sees it.
func (s *Set) action(ctx context.Context, h hook, a action, c *Call, out *Outcome, o Observer) {
	seen := Action{ID: s.opts.NewID(), Name: a.name, Type: a.Type}
	if c.Tool != nil {
		seen.CallID = c.Tool.CallID
	}
	if o != nil && h.visible {
		o.Started(seen)
	}
	r := s.run(ctx, a, c.Roots[0], s.input(h, a, *c))
	rep := Report{Status: r.status, Output: r.stdout, Error: join(r.problem, r.stderr)}
	said, reason, blocked := output{}, "", false
	if h.Claude && r.status == 0 && r.complete {
		said, reason, blocked = c.claude(r.stdout)
	}
	switch {
	case blocked:
		rep.Output = reason
		out.block(c, Blocked{Hook: a.name, Text: reason, Visible: h.visible})
	case r.status == interventionCode && h.Claude && c.Event == PostToolCall:
		// There, it is said beside what the tool returned.
		out.Context = append(out.Context, r.stderr)
	case r.status == interventionCode:
		out.block(c, Blocked{Hook: a.name, Text: r.stderr, Visible: h.visible})
	case r.status == 0 && !r.complete:
		rep.Error = join("its output is too long to be used", r.stderr)
	case r.status == 0:
		parsed, ok := said, h.Claude
		if !ok {
			parsed, ok = parse(r.stdout)
		}
		if ok {
			said = parsed.only(c.Event)
			rep.Output, rep.Error = said.effects(), join(strings.Join(said.problems, "\n"), r.stderr)
			out.apply(c, a.name, said)
		}
	}
	cause := failure(r, said, !h.Claude && strings.HasPrefix(r.stdout, "{"))
	if rep.Failed = r.status != interventionCode && cause != "" && ctx.Err() == nil && !foundNothing(a, c.Roots[0], r); rep.Failed {
		rep.Error = cmp.Or(rep.Error, cause)
	}
	s.guardResult(h, a, c, out, r, said, o)
	level := slog.LevelWarn
	if o == nil { // nothing else shows it
		level = slog.LevelError
	}
	switch {
	case rep.Failed:
		s.opts.Log.Log(ctx, level, "hook failed", "hook", a.name, "event", c.Event, "status", r.status, "err", forDisplay(rep.Error))
	case o == nil && ctx.Err() != nil:
		s.opts.Log.Error("hook was stopped before it ended, because eca ends", "hook", a.name, "event", c.Event)
	}
	if o == nil {
		return
	}
	hiddenFailure := !h.visible && rep.Failed && c.Event != PostToolCall // guardResult has reported that
	if hiddenFailure {
		o.Started(seen)
	}
	if h.visible || hiddenFailure {
		if said.SuppressOutput && !rep.Failed {
			rep.Output, rep.Error = "", ""
		}
		rep.Output, rep.Error = forDisplay(rep.Output), forDisplay(rep.Error)
		o.Finished(seen, rep)
	}
	if said.SystemMessage != "" {
		o.Said("Hook '" + a.name + "': " + forDisplay(said.SystemMessage))
	}
}

func join(a, b string) string { return strings.Trim(a+"\n"+b, "\n") }

// input is what a script reads.
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
		s.opts.Log.Error("the input of a hook cannot be written", "hook", a.name, "err", err)
	}
	return raw
}

// block notes an intervention.
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

// apply notes what a script wants.
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
		out.Prompt = o.ReplacedPrompt
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
			out.Input, c.Tool.Arguments = raw, raw
		}
	}
	if strictness(o.Approval) > strictness(out.Approval) {
		out.Approval = o.Approval
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
