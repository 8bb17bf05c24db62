package shell

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/heldback"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// notes returns the lines about outcomes of searches that are added to the result of a command.
func notes(outcomes ...heldback.Outcome) string {
	var lines []string
	for _, o := range outcomes {
		for _, line := range o.Lines() {
			lines = append(lines, notePrefix+line+"]")
		}
	}
	return strings.Join(lines, "\n")
}

// recordSearch records that a search for protected files is due after a command. If the record cannot be
// written, the command does not start; only the user can allow it to run without the search.
func (o Options) recordSearch(spec proc.Spec) (*heldback.Search, error) {
	search, err := o.HeldBack.Begin(spec.Sandbox.Places)
	if err != nil {
		return nil, fmt.Errorf("the command was not run: %w; or ask the user to run it outside the sandbox (shell_command with outside)", err)
	}
	return search, nil
}

// moveHeldBack moves away the protected files that a command created, and asks the user whether to
// restore them. It returns lines for the command's result.
func (o Options) moveHeldBack(ctx context.Context, call tools.Call, search *heldback.Search) string {
	outcome := search.Finish()
	note := notes(outcome)
	if len(outcome.Moved) == 0 || o.Ask == nil || call.Subagent() || ctx.Err() != nil {
		return note
	}
	const keep = "Keep"
	if o.Ask(ctx, call, fmt.Sprintf("The command created %s, which other programs use or run. Keep it?", outcome.Paths()), []Choice{
		{Label: keep, Description: "Put it back where the command made it."},
		{Label: "Hold back", Description: "Leave it in eca's state folder."},
	}) != keep {
		return note
	}
	for _, item := range outcome.Moved {
		if err := item.Restore(); err != nil {
			return note + fmt.Sprintf("\n[sandbox: the user wants to keep it, but it could not be put back: %v]", err)
		}
	}
	kept := fmt.Sprintf("[sandbox: the command made %s; the user keeps it]", outcome.Paths())
	outcome.Moved = nil
	return strings.TrimSuffix(kept+"\n"+notes(outcome), "\n")
}
