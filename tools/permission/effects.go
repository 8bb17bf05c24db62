package permission

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// Limits of the effects that an approval request lists.
const (
	maxEffects         = 20  // in the details
	maxEffectsInReason = 3   // in the reason
	maxEffectText      = 200 // bytes of each
)

// effectsOf returns the effect of each part of a command, which may be EffectUnknown; at most maxEffects.
func effectsOf(c *tools.Command) []event.Effect {
	if c == nil {
		return nil
	}
	program := c.Program
	var out []event.Effect
	for i, cmd := range program.Commands {
		e := event.Effect{Command: clip(cmd.Source), Effect: event.EffectUnknown, Reason: clip(cmd.Why)}
		switch inner := innerCommand(program.Commands, i); {
		case cmd.Effect == cmdline.Reads:
			e.Effect = event.EffectReads
		case cmd.Effect == cmdline.Changes:
			e.Effect = event.EffectWrites
		case inner != "":
			e.Effect, e.Target, e.Reason = event.EffectRuns, clip(inner), ""
		}
		out = append(out, e)
	}
	for _, path := range program.Writes {
		out = append(out, event.Effect{Command: clip("> " + path), Effect: event.EffectWrites, Target: clip(path)})
	}
	why := cmp.Or(program.Unresolved, program.Computed)
	if why != "" && !slices.ContainsFunc(out, func(e event.Effect) bool { return e.Reason == why }) {
		out = append(out, event.Effect{Effect: event.EffectUnknown, Reason: why})
	}
	return out[:min(len(out), maxEffects)]
}

// innerCommand returns the command that command i runs, if i is a wrapper (env, sudo, xargs). The
// command that a wrapper runs has Demands.
func innerCommand(commands []cmdline.Command, i int) string {
	for _, inner := range commands {
		if inner.Text != commands[i].Text && len(inner.Demands) > 0 && strings.Contains(commands[i].Text, " "+inner.Text) {
			return inner.Text
		}
	}
	return ""
}

// effectWords describes the effects other than reading, except those that reason already contains.
func effectWords(effects []event.Effect, reason string) string {
	var out []string
	more := 0
	for _, e := range effects {
		text := ""
		switch {
		case e.Effect == event.EffectReads, e.Reason != "" && strings.Contains(reason, e.Reason):
			continue
		case e.Effect == event.EffectWrites && e.Target != "" && strings.HasSuffix(reason, " "+e.Target):
			continue
		case e.Effect == event.EffectWrites && e.Target != "":
			text = "writes " + e.Target
		case e.Effect == event.EffectRuns:
			text = fmt.Sprintf("`%s` runs `%s`", e.Command, e.Target)
		case e.Command == "":
			text = e.Reason
		case e.Reason != "":
			text = fmt.Sprintf("`%s`: %s", e.Command, e.Reason)
		default:
			text = "`" + e.Command + "`"
		}
		if len(out) == maxEffectsInReason {
			more++
			continue
		}
		out = append(out, text)
	}
	if more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, "; ")
}

// clip shortens a text to one line, for a question.
func clip(text string) string {
	if !isClipped(text) {
		text = strings.Join(strings.Fields(text), " ")
	}
	if len(text) > maxEffectText {
		text = strings.ToValidUTF8(text[:maxEffectText], "") + "..."
	}
	return text
}

// isClipped reports whether a text is ASCII with single spaces between its words.
func isClipped(text string) bool {
	last := byte(' ')
	for _, c := range []byte(text) {
		if c < ' ' || c >= 0x80 || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' '
}

// explain adds details for the user to the verdict on a command. If eca asks, these are the effects of
// the command's parts. If the command runs without asking, it is the sandbox.
func (p *Policy) explain(call tools.Call, plan tools.Plan, v *tools.Verdict) {
	if plan.Command == nil {
		return
	}
	var shown event.ShellCommand
	switch details := v.Details; {
	case details != nil && details.ShellCommand != nil:
		shown = *details.ShellCommand
	case plan.Details != nil && plan.Details.ShellCommand != nil:
		shown = *plan.Details.ShellCommand
	default:
		shown.Commands = []event.Command{}
	}
	switch v.Decision {
	case tools.Ask:
		shown.Effects = effectsOf(plan.Command)
		if words := effectWords(shown.Effects, v.Reason); words != "" {
			v.Reason += " (" + words + ")"
		}
	case tools.Allow:
		if p.bounds != nil && plan.Command.TemplateArguments == nil {
			call.Authorization.Rule = v.Rule
			shown.Sandbox = p.bounds(call)
		}
	}
	if len(shown.Effects) > 0 || shown.Sandbox != nil {
		v.Details = &event.Details{ShellCommand: &shown}
	}
}
