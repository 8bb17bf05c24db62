package chat

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// progressExpanding is shown while eca fetches the prompt of a command.
const progressExpanding = "Getting the prompt"

// prepare does the slow work that precedes the first request. plain is true unless the prompt is a
// command.
func (t *turn) prepare(c Command, plain bool) error {
	if err := t.expand(c); err != nil {
		return err
	}
	return t.hooks.runPreRequestHooks(t.prompt.Text, plain)
}

// expand gets the prompt of a command that has an Expand function, such as a prompt of an MCP server.
// Errors are shown to the user, and the model does not see the command.
func (t *turn) expand(c Command) error {
	if c.Expand == nil {
		return nil
	}
	t.rec.showProgress(progressExpanding)
	said, err := c.Expand(t.ctx)
	switch {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case err != nil:
		t.rec.showNotice(err.Error())
		return errBlocked
	}
	t.rec.emit(event.PromptAmended{Said: said})
	return nil
}

// runCommand executes a slash command.
func (t *turn) runCommand(c Command) error {
	if c.Dialog != nil {
		return t.continueDialog(c.Dialog, c.Text)
	}
	if c.Run == nil {
		err := t.compactor.compact(c.Compact, false)
		if errors.Is(err, errCompactBlocked) {
			return nil
		}
		return err
	}
	text, err := c.Run(t.ctx, t.session)
	if err == nil && text != "" {
		t.rec.emit(event.Notice{Text: text, Markdown: true})
	}
	return err
}
