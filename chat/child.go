package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/tools"
)

// A subagent is a chat with its own log. Its prompts come, one at a time, from tool calls of another
// chat, its parent. Its turn ends with the parent turn at the latest. It can do only what the parent's
// agent can do. Its costs are added to the parent's, and its file changes are undone with the parent's
// call. A subagent cannot start subagents.

// childEndTimeout is how long a finishing turn waits for its subagents, so that clients see the subagents
// finish first.
const childEndTimeout = time.Second

// PurposeSubagent marks the usage of a subagent in its parent's chat (event.UsageReported).
const PurposeSubagent = "subagent"

const progressSubagent = "Waiting subagent"

// child is a subagent of a running turn.
type child struct {
	event.Subagent
	callID  string
	session *Session
	turn    *turn
}

// childID returns the chat id of the subagent that a call starts. It depends on the arguments only.
func childID(parent, callID string) string {
	sum := sha256.Sum256([]byte(parent + "\n" + callID))
	return tools.SubagentPrefix + hex.EncodeToString(sum[:12])
}

// subagents implements tools.Subagents for a call.
type subagents struct {
	*turnContext
	children *children
	callID   string
}

var _ tools.Subagents = subagents{}

// Plan implements tools.Subagents.
func (s subagents) Plan(r tools.SubagentRequest) (event.Subagent, error) {
	sub := event.Subagent{ChatID: childID(s.session.id, s.callID), Agent: r.Agent, Background: r.Background}
	names := s.Config.Spawnable(s.agent)
	switch {
	case s.parent != "":
		return sub, errors.New("a subagent cannot start subagents")
	case strings.TrimSpace(r.Task) == "":
		return sub, errors.New("INVALID_ARGS: the task is empty")
	case !slices.Contains(names, r.Agent):
		return sub, fmt.Errorf("INVALID_ARGS: unknown subagent %q; available: %s", r.Agent, cmp.Or(strings.Join(names, ", "), "none"))
	}
	agent := s.Config.Agents[r.Agent]
	model, variant := cmp.Or(r.Model, agent.DefaultModel, s.Config.Models.Subagent, s.model.ID), cmp.Or(r.Variant, agent.Variant)
	if r.Resume != "" {
		meta, err := s.metaToResume(r)
		if err != nil {
			return sub, err
		}
		sub.ChatID, model, variant = meta.ID, cmp.Or(r.Model, meta.Model, model), cmp.Or(r.Variant, meta.Variant)
	}
	m, err := s.Models.Resolve(model, s.model.ID)
	ids := s.session.eng.deps.ModelIDs()
	if err == nil && r.Model != "" && m.ID != s.model.ID && !slices.Contains(ids, m.ID) {
		err = fmt.Errorf("unknown model %s", r.Model)
	}
	if err != nil {
		return sub, fmt.Errorf("INVALID_ARGS: %w; available: %s", err, listNames(ids))
	}
	if _, ok := m.Variants[r.Variant]; r.Variant != "" && !ok {
		return sub, fmt.Errorf("INVALID_ARGS: the model %s has no variant %q; available: %s", m.ID, r.Variant, listNames(slices.Sorted(maps.Keys(m.Variants))))
	}
	sub.Model, sub.Variant = m.ID, variant
	if agent.MaxSteps != nil {
		sub.MaxSteps = *agent.MaxSteps
	}
	return sub, nil
}

// metaToResume checks that the requested chat can be resumed, and returns its metadata.
func (s subagents) metaToResume(r tools.SubagentRequest) (Meta, error) {
	eng := s.session.eng
	meta, _, found, err := eng.deps.Store.Meta(s.ctx, r.Resume)
	switch {
	case err != nil:
		return meta, fmt.Errorf("the subagent %s cannot be read: %w", r.Resume, err)
	case !found || meta.Parent != s.session.id:
		return meta, fmt.Errorf("INVALID_ARGS: this chat has no subagent %q to resume", r.Resume)
	case meta.Agent != r.Agent:
		return meta, fmt.Errorf("INVALID_ARGS: subagent %s belongs to the agent %s, not %s", r.Resume, meta.Agent, r.Agent)
	case s.children.inUse(r.Resume):
		return meta, fmt.Errorf("subagent %s is still running; wait for its result", r.Resume)
	}
	return meta, nil
}

// listNames lists up to 50 names, and the number of the others.
func listNames(names []string) string {
	const limit = 50
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}

// Run implements tools.Subagents.
func (s subagents) Run(ctx context.Context, r tools.SubagentRequest) (tools.Result, error) {
	sub, err := s.Plan(r)
	if err != nil {
		return tools.Result{}, err
	}
	c, err := s.start(ctx, sub, r)
	if err != nil {
		return tools.Result{}, err
	}
	if sub.Background {
		s.children.runInBackground(c)
		text := fmt.Sprintf("The subagent %s is running in the background, in the chat %s. You will get its result later. Do not wait for it; continue with work that does not depend on it.", sub.Agent, sub.ChatID)
		return tools.Result{Outputs: []string{text}, Details: &event.Details{Subagent: &sub}}, nil
	}
	<-c.turn.done
	s.children.dismiss(c)
	text, failed := c.result()
	_, sub.Step = c.turn.assignment.outcome()
	return tools.Result{Outputs: []string{text}, Failed: failed, Details: &event.Details{Subagent: &sub}}, nil
}

// start gives a subagent its task.
func (s subagents) start(ctx context.Context, sub event.Subagent, r tools.SubagentRequest) (*child, error) {
	if !s.children.claim(sub.ChatID) {
		return nil, fmt.Errorf("subagent %s is still running; wait for its result", sub.ChatID)
	}
	session, err := s.session.eng.openChild(ctx, sub.ChatID, s.session.id, oneLine(cmp.Or(r.Activity, r.Task), titleLength))
	if err != nil {
		s.children.release(sub.ChatID)
		return nil, err
	}
	c := &child{Subagent: sub, callID: s.callID, session: session}
	fail := func(err error) (*child, error) {
		s.children.dismiss(c)
		return nil, fmt.Errorf("the subagent could not be started: %w", err)
	}
	if r.Resume == "" && session.Next() > 1 {
		// The chat is left over from a rolled-back call with the same id.
		if _, err := session.Clear().Wait(ctx); err != nil {
			return fail(err)
		}
	}
	// Before Submit, because calls may be announced before it returns, and the user's decisions about
	// them must reach the subagent.
	s.children.addSession(c)
	if !sub.Background { // the call of a background subagent ends immediately, without updates
		s.rec.emit(event.ToolUpdated{CallID: s.callID, Details: &event.Details{Subagent: &sub}})
	}
	acc, err := session.Submit(Prompt{
		Parent: s.session.id, TurnID: s.callID, Text: r.Task, Model: sub.Model, Agent: sub.Agent, Variant: sub.Variant, assignment: &assignment{parentTurn: s.turnContext, callID: s.callID, subagent: sub},
	}).Wait(ctx)
	if err != nil {
		return fail(err)
	}
	c.turn = acc.turn
	s.children.add(c)
	return c, nil
}

// result returns the outcome of a subagent whose turn has ended.
func (c *child) result() (text string, failed bool) {
	said, _ := c.turn.assignment.outcome()
	outcome, end := "", c.turn.rec.terminalEvent()
	switch end.Reason {
	case event.FinishedDone:
		text := fmt.Sprintf("## Agent '%s' Result\n\nChat: %s\n\n%s", c.Agent, c.ChatID, cmp.Or(said, "It ended without any text."))
		switch end.Incomplete {
		case event.IncompleteLength:
			return text + "\n\n(The result reached the model's output limit and was truncated.)", false
		case event.IncompleteRefusal:
			return text + "\n\n(The subagent's model refused to continue, or its provider filtered the answer; the result is not complete.)", true
		case event.IncompleteUnmarked:
			return text + "\n\n(The subagent's provider did not say that the result is complete; something may be missing.)", false
		case event.IncompleteEmpty:
			return text, true
		}
		return text, false
	case event.FinishedFailed:
		outcome = "failed: " + strings.TrimRight(end.Err, ". ")
	case event.FinishedStopped:
		outcome = "was stopped by the user"
	case event.FinishedByHook, event.FinishedBlocked:
		outcome = "was stopped by a hook"
	case event.FinishedBudget:
		outcome = "was stopped: " + strings.TrimRight(end.Err, ". ")
	case event.FinishedLoop:
		outcome = "was stopped because it kept repeating the same calls"
	default:
		outcome = "was interrupted"
	}
	out := fmt.Sprintf("The subagent %s %s.", c.Agent, outcome)
	if said != "" {
		out += " Its last message:\n\n" + said + "\n"
	}
	return out + "\n" + history.ResumeHint(c.Subagent), true
}

// report returns the outcome of a background subagent, for the model.
func (c *child) report() event.Report {
	r := event.Report{CallID: c.callID, ChatID: c.ChatID, Agent: c.Agent, Failed: true}
	select {
	case <-c.turn.rec.ended:
		r.Text, r.Failed = c.result()
	default:
		r.Text = history.InterruptedReport(c.Subagent)
	}
	return r
}
