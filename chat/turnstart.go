package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
)

// interpretation is how eca understands a prompt: as text for the model, a command, or dialog input.
type interpretation struct {
	message       event.UserMessage
	isCommand     bool    // the prompt is a command or the input of an open dialog
	command       Command // set if isCommand
	isDialogInput bool    // the prompt is the input of an open dialog
}

// asksModel reports whether the turn will ask a model.
func (o interpretation) asksModel() bool { return !o.isCommand || o.command.Prompt != "" }

// start shows the prompt and begins to answer it, without waiting for a model.
func (t *turn) start() Accepted {
	model, err := t.chooseModel()
	if t.missingAgent != "" && t.parent != "" {
		err = fmt.Errorf("the agent %q is not configured any more", t.missingAgent)
	}
	t.model = model
	meta := t.saveSettings(err == nil)
	o := t.interpret()
	if o.asksModel() {
		t.budget.begin()
	}
	t.announce(o, meta)
	if err == nil && o.asksModel() {
		t.noteModelSwitch()
		t.chooseFallbacks()
	}
	acc := Accepted{TurnID: t.id, Done: t.done, Model: meta.Model}
	switch {
	case o.isCommand && o.command.Dialog != nil: // no hooks: the answers are for eca alone
		acc.Dialog = o.isDialogInput
		go t.run(func() error { return t.runCommand(o.command) })
	case !o.asksModel() && (err == nil || o.command.Run != nil):
		go t.run(func() error {
			if err := t.hooks.runPreRequestHooks(t.prompt.Text, false); err != nil {
				return err
			}
			return t.runCommand(o.command)
		})
	case err != nil:
		t.finish(fmt.Errorf("Error: %w", err)) //nolint:staticcheck // shown as it is
		t.cancel(nil)
		t.budget.end()
		close(t.done)
		return Accepted{TurnID: t.id, Done: t.done, Failed: true}
	case t.Config.Conformance().FixedOrder:
		go t.run(func() error {
			if err := t.prepare(o.command, !o.isCommand); err != nil {
				return err
			}
			t.requestTitle(t.model, t.textForTitle())
			t.rec.showProgress(progressWaiting)
			return t.converse()
		})
	case t.hooks.hasPreRequestHooks() || o.command.Expand != nil: // these may take long, and the caller does not wait for them
		go t.run(func() error {
			if err := t.prepare(o.command, !o.isCommand); err != nil {
				return err
			}
			t.rec.showProgress(progressWaiting)
			t.titleInBackground()
			return t.converse()
		})
	default:
		t.session.startHooksRan = true
		t.rec.emit(event.Progress{Text: progressWaiting})
		t.titleInBackground()
		go t.run(t.converse)
	}
	return acc
}

// saveSettings saves the settings of the prompt as those of the chat: agent, variant, auto-approve, and the
// model if it could be resolved.
func (t *turn) saveSettings(hasModel bool) (meta Meta) {
	variant := t.prompt.Variant
	if variant == "" {
		variant = t.Config.Agents[t.agent].Variant
	}
	t.session.log.SetMeta(func(m *Meta) {
		m.Agent, m.Variant = t.agent, variant
		if hasModel {
			m.Model = t.model.ID
		}
		if t.prompt.Trust != nil {
			m.Trust = *t.prompt.Trust
		}
		meta = *m
	})
	return meta
}

// interpret finds out whether the prompt is for the model, a command, or the input of an open dialog.
func (t *turn) interpret() interpretation {
	o := interpretation{message: event.UserMessage{ContentID: t.session.eng.deps.NewID(), Text: strings.TrimSpace(t.prompt.Text)}}
	if t.parent == "" { // the task of a subagent is written by a model, and is never a command
		o.command, o.isCommand = t.session.eng.deps.Commands.Find(o.message.Text)
		if o.command.Check != nil {
			if err := o.command.Check(t.agent); err != nil {
				o.command = Command{Run: func(context.Context, *Session) (string, error) { return "", err }}
			}
		}
	}
	t.restoreLostDialog(o.isCommand || t.parent != "")
	if o.isDialogInput = t.session.openDialog != nil; o.isDialogInput {
		o.command, o.isCommand = Command{Dialog: t.session.openDialog, Text: o.message.Text}, true
		if t.session.openDialog.Secret() {
			o.message.Text, t.prompt.Text = Masked, Masked
		}
	}
	if o.command.Expand != nil {
		o.command.Prompt = o.message.Text // a placeholder until Expand has run
	}
	if o.isCommand {
		o.message.Command, o.message.Prompt = true, o.command.Prompt
		o.message.Dialog = o.command.Dialog != nil
	}
	return o
}

// announce resolves the contexts of the prompt and emits the first events of the turn.
func (t *turn) announce(o interpretation, meta Meta) {
	if len(t.prompt.Contexts) > 0 {
		t.rec.emit(event.Progress{Text: progressContexts})
	}
	query := contexts.Query{Roots: t.Roots, Message: o.message.Text, Refs: t.prompt.Contexts}
	if o.asksModel() {
		query.ChatID = t.session.id
	}
	blocks, problems := t.resolveContexts(query)
	for _, b := range blocks {
		o.message.Context = append(o.message.Context, event.Block(b))
	}
	if len(problems) > 0 {
		o.message.Context = append(o.message.Context, event.Block{
			Label: "left out", Text: "The user refers to content that you cannot see: " + strings.Join(problems, "; ") + ".",
		})
	}
	rights := int(t.Config.Rights(t.agent))
	t.rec.emit(o.message, event.TurnStarted{Model: meta.Model, Agent: t.agent, Variant: meta.Variant, Trust: meta.Trust, Rights: &rights})
	if t.missingAgent != "" && t.parent == "" {
		t.noteSubstitute(meta.Trust)
	}
	if !o.isCommand && read(t.rec, (*history.History).Tasks).Done() {
		t.rec.emit(event.TasksCleared{})
	}
	if len(problems) > 0 {
		t.rec.emit(event.Notice{Text: "Left out of the context: " + strings.Join(problems, "; ") + "\n\n"})
	}
	if o.asksModel() && t.model.NoImages {
		t.noteUnseenImages(o.message.Context)
	}
}

// noteUnseenImages notifies the user that the model is not sent the images of the prompt; see
// imageFilter.visible.
func (t *turn) noteUnseenImages(context []event.Block) {
	n := 0
	for _, b := range context {
		if len(b.Data) > 0 {
			n++
		}
	}
	if n > 0 {
		t.rec.emit(event.Notice{Text: fmt.Sprintf("%s is not known to accept images, so eca does not send it the images of this prompt (%d). If it accepts images, set imageInput of the model in the configuration.\n\n", t.model.displayName(), n)})
	}
}

// resolveContexts resolves the contexts of the prompt. If the turn is cancelled meanwhile, it returns no
// problems, since those would only report the cancellation.
func (t *turn) resolveContexts(q contexts.Query) ([]contexts.Block, []string) {
	if text := contexts.FetchProgress(q.Refs); text != "" {
		t.rec.emit(event.Progress{Text: text})
	}
	blocks, problems := t.session.eng.deps.Contexts.Resolve(t.ctx, q)
	if t.ctx.Err() != nil {
		problems = nil
	}
	return blocks, problems
}

// noteSubstitute notifies the user that another agent replaces the missing one, and what it may do.
func (t *turn) noteSubstitute(trust bool) {
	oldRights := read(t.rec, func(h *history.History) *config.Rights {
		if known, ok := h.Rights(t.missingAgent); ok {
			return &known
		}
		return nil
	})
	text := t.Config.Substitution(t.missingAgent, t.agent, oldRights)
	if trust {
		text += " Auto-approve is on in this chat."
	}
	t.rec.emit(event.Notice{Text: text + "\n\n"})
}
