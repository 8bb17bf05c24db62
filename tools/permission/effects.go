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
		e := event.Effect{Command: shortLine(cmd.Source), Effect: event.EffectUnknown, Reason: shortLine(cmd.Why)}
		switch inner := innerCommand(program.Commands, i); {
		case cmd.Effect == cmdline.Reads:
			e.Effect = event.EffectReads
		case cmd.Effect == cmdline.Changes:
			e.Effect = event.EffectWrites
		case inner != "":
			e.Effect, e.Target, e.Reason = event.EffectRuns, shortLine(inner), ""
		}
		out = append(out, e)
	}
	for _, path := range program.Writes {
		out = append(out, event.Effect{Command: shortLine("> " + path), Effect: event.EffectWrites, Target: shortLine(path)})
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

// describeEffects describes the effects other than reading, except those that reason already contains.
func describeEffects(effects []event.Effect, reason string) string {
	var out []string
	omitted := 0
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
			omitted++
			continue
		}
		out = append(out, text)
	}
	if omitted > 0 {
		out = append(out, fmt.Sprintf("and %d more", omitted))
	}
	return strings.Join(out, "; ")
}

// shortLine puts a text on one short line, for a question to the user.
func shortLine(text string) string {
	if !isPlainLine(text) {
		text = strings.Join(strings.Fields(text), " ")
	}
	if len(text) > maxEffectText {
		text = strings.ToValidUTF8(text[:maxEffectText], "") + "..."
	}
	return text
}

// isPlainLine reports whether a text is ASCII with single spaces between its words.
func isPlainLine(text string) bool {
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
		if words := describeEffects(shown.Effects, v.Reason); words != "" {
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
