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
	"github.com/seed-dec29ce4/eca/tools"
)

// A subagent is a chat like any other, with a log of its own, whose one prompt at a time
// comes from a tool call of another chat, its parent. Its turn ends with the parent's at
// the latest; what it may do the parent's agent may too; what it costs the parent costs,
// and what it does to files is undone with the call. A subagent has none itself.

// maxEnding bounds how long a turn that ends waits for the ends of its subagents, which
// belong in front of its own.
const maxEnding = time.Second

// PurposeSubagent marks what a subagent's requests cost its parent (event.UsageReported).
const PurposeSubagent = "subagent"

const progressSubagent = "Waiting subagent"

// child is a subagent that runs for a call of a turn.
type child struct {
	event.Subagent
	callID  string
	session *Session
	turn    *turn
}

// childID names the chat of a call's subagent: always the same.
func childID(parent, callID string) string {
	sum := sha256.Sum256([]byte(parent + "\n" + callID))
	return tools.SubagentPrefix + hex.EncodeToString(sum[:12])
}

// subagents implements tools.Subagents for a call.
type subagents struct {
	t      *turn
	callID string
}

var _ tools.Subagents = subagents{}

// Plan implements tools.Subagents.
func (s subagents) Plan(r tools.SubagentRequest) (event.Subagent, error) {
	t := s.t
	sub := event.Subagent{ChatID: childID(t.s.id, s.callID), Agent: r.Agent, Background: r.Background}
	names := t.cfg.Spawnable(t.agent)
	switch {
	case t.prompt.Parent != "":
		return sub, errors.New("a subagent can not start subagents")
	case strings.TrimSpace(r.Task) == "":
		return sub, errors.New("INVALID_ARGS: the task is empty")
	case !slices.Contains(names, r.Agent):
		return sub, fmt.Errorf("INVALID_ARGS: there is no subagent %q for this agent; there are: %s", r.Agent, cmp.Or(strings.Join(names, ", "), "none"))
	}
	agent := t.cfg.Agents[r.Agent]
	model, variant := cmp.Or(r.Model, agent.DefaultModel, t.model.ID), cmp.Or(r.Variant, agent.Variant)
	if r.Resume != "" {
		meta, err := s.resumed(r)
		if err != nil {
			return sub, err
		}
		sub.ChatID, model, variant = meta.ID, cmp.Or(r.Model, meta.Model, model), cmp.Or(r.Variant, meta.Variant)
	}
	m, err := t.s.eng.deps.Models.Resolve(model, t.model.ID)
	ids := t.s.eng.deps.ModelIDs()
	if err == nil && r.Model != "" && m.ID != t.model.ID && !slices.Contains(ids, m.ID) {
		err = fmt.Errorf("the model %s is not known", r.Model)
	}
	if err != nil {
		return sub, fmt.Errorf("INVALID_ARGS: %w; there are: %s", err, someOf(ids))
	}
	if _, ok := m.Variants[r.Variant]; r.Variant != "" && !ok {
		return sub, fmt.Errorf("INVALID_ARGS: the model %s has no variant %q; it has: %s", m.ID, r.Variant, someOf(slices.Sorted(maps.Keys(m.Variants))))
	}
	sub.Model, sub.Variant = m.ID, variant
	if agent.MaxSteps != nil {
		sub.MaxSteps = *agent.MaxSteps
	}
	return sub, nil
}

// resumed finds the chat that shall go on.
func (s subagents) resumed(r tools.SubagentRequest) (Meta, error) {
	eng := s.t.s.eng
	meta, _, found, err := eng.deps.Store.Meta(s.t.ctx, r.Resume)
	switch {
	case err != nil:
		return meta, fmt.Errorf("the subagent %s can not be read: %w", r.Resume, err)
	case !found || meta.Parent != s.t.s.id:
		return meta, fmt.Errorf("INVALID_ARGS: this chat has no subagent %q to resume", r.Resume)
	case meta.Agent != r.Agent:
		return meta, fmt.Errorf("INVALID_ARGS: the subagent %s is of the agent %s, not %s", r.Resume, meta.Agent, r.Agent)
	case s.t.children.inUse(r.Resume):
		return meta, fmt.Errorf("the subagent %s still works; wait for its result", r.Resume)
	}
	return meta, nil
}

// someOf lists names, if they are not too many for a message.
func someOf(names []string) string {
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
		s.t.runBehind(c)
		text := fmt.Sprintf("The subagent %s works in the background, in the chat %s. You will be told its result; do not wait for it, go on with what does not depend on it.", sub.Agent, sub.ChatID)
		return tools.Result{Outputs: []string{text}, Details: &event.Details{Subagent: &sub}}, nil
	}
	<-c.turn.done
	s.t.dismiss(c)
	text, failed := c.result()
	sub.Step = c.turn.steps // nobody counts any more
	return tools.Result{Outputs: []string{text}, Failed: failed, Details: &event.Details{Subagent: &sub}}, nil
}

// start gives a subagent its task.
func (s subagents) start(ctx context.Context, sub event.Subagent, r tools.SubagentRequest) (*child, error) {
	t := s.t
	if !t.children.claim(sub.ChatID) {
		return nil, fmt.Errorf("the subagent %s still works; wait for its result", sub.ChatID)
	}
	session, err := t.s.eng.openChild(ctx, sub.ChatID, t.s.id, oneLine(cmp.Or(r.Activity, r.Task), titleLength))
	if err != nil {
		t.children.release(sub.ChatID)
		return nil, err
	}
	c := &child{Subagent: sub, callID: s.callID, session: session}
	fail := func(err error) (*child, error) {
		t.dismiss(c)
		return nil, fmt.Errorf("the subagent could not be started: %w", err)
	}
	if r.Resume == "" && session.Next() > 1 {
		// A call of the same id was taken back; what its subagent said belongs to that.
		if _, err := session.Clear().Wait(ctx); err != nil {
			return fail(err)
		}
	}
	if !sub.Background { // whose call ends at once, and clients hear nothing of it behind that
		t.emit(event.ToolUpdated{CallID: s.callID, Details: &event.Details{Subagent: &sub}})
	}
	acc, err := session.Submit(Prompt{
		Parent: t.s.id, TurnID: s.callID, Text: r.Task, Model: sub.Model, Agent: sub.Agent, Variant: sub.Variant, boss: t, sub: &sub,
	}).Wait(ctx)
	if err != nil {
		return fail(err)
	}
	c.turn = acc.turn
	t.children.add(c)
	return c, nil
}

// runBehind lets a subagent run in the background of the turn.
func (t *turn) runBehind(c *child) {
	t.children.later(c)
	t.behind.Go(func() {
		<-c.turn.done
		t.dismiss(c)
		t.children.wake()
	})
}

// dismiss closes the chat of a subagent that has ended.
func (t *turn) dismiss(c *child) {
	t.s.eng.mu.Lock()
	if t.s.eng.sessions[c.session.id] == c.session {
		delete(t.s.eng.sessions, c.session.id)
	}
	t.s.eng.mu.Unlock()
	c.session.close()
	t.children.remove(c)
}

// result says what became of a subagent whose turn is over.
func (c *child) result() (text string, failed bool) {
	t := c.turn
	t.mu.Lock()
	defer t.mu.Unlock()
	said := strings.TrimSpace(cmp.Or(strings.TrimSpace(t.said.String()), t.saidBefore))
	why := ""
	switch t.end.Reason {
	case event.FinishedDone:
		return fmt.Sprintf("## Agent '%s' Result\n\nChat: %s\n\n%s", c.Agent, c.ChatID, cmp.Or(said, "It ended without a word.")), false
	case event.FinishedFailed:
		why = "failed: " + strings.TrimRight(t.end.Err, ". ")
	case event.FinishedStopped:
		why = "was stopped by the user"
	case event.FinishedByHook, event.FinishedBlocked:
		why = "was ended by a hook"
	case event.FinishedLoop:
		why = "did the same again and again and was ended"
	default:
		why = "was interrupted"
	}
	out := fmt.Sprintf("The subagent %s %s.", c.Agent, why)
	if said != "" {
		out += " The last it said:\n\n" + said + "\n"
	}
	return out + "\n" + resumable(c.Subagent), true
}

// resumable tells the model how a subagent goes on.
func resumable(s event.Subagent) string {
	return fmt.Sprintf("It can go on where it ended, with all it knows: call the tool again with agent %q and resume %q.", s.Agent, s.ChatID)
}

// report tells the model what became of a subagent in the background.
func (c *child) report() event.Report {
	r := event.Report{CallID: c.callID, ChatID: c.ChatID, Agent: c.Agent, Failed: true}
	select {
	case <-c.turn.ended:
		r.Text, r.Failed = c.result()
	default:
		r.Text = lostReport(c.Subagent)
	}
	return r
}

func lostReport(s event.Subagent) string {
	return fmt.Sprintf("The subagent %s was interrupted. %s", s.Agent, resumable(s))
}

// takeReports tells the model the results of those in the background that have ended.
func (t *turn) takeReports() (any bool) {
	for _, c := range t.children.unreported() {
		select {
		case <-c.turn.ended:
			t.emit(c.report())
			t.children.reported(c)
			any = true
		default:
		}
	}
	return any
}

// awaitSubagents waits for what those in the background, or the user meanwhile, have to
// say; more is false if there is nothing to wait for.
func (t *turn) awaitSubagents() (more bool, err error) {
	for {
		if len(t.children.unreported()) == 0 {
			return false, nil
		}
		steered, reported := t.takeSteers(), t.takeReports()
		if steered || reported {
			return true, nil
		}
		t.enter(progressSubagent)
		select {
		case <-t.children.ended:
		case <-t.ctx.Done():
			return false, context.Cause(t.ctx)
		}
	}
}

// endChildren ends the subagents of a turn that ends. It waits a moment, so that clients
// hear of their ends first.
func (t *turn) endChildren() {
	list := t.children.all()
	for _, c := range list {
		c.turn.cancel(errStopped)
	}
	if len(list) == 0 {
		return
	}
	timer := time.NewTimer(maxEnding)
	defer timer.Stop()
	for _, c := range list {
		select {
		case <-c.turn.ended:
		case <-timer.C:
			return
		}
	}
}

// stepped counts a batch of tool calls of a subagent, and shows that. An error says that
// there have been enough.
func (t *turn) stepped() error {
	if t.boss == nil {
		return nil
	}
	t.mu.Lock()
	sub := *t.prompt.sub
	if sub.MaxSteps > 0 && t.steps >= sub.MaxSteps {
		t.mu.Unlock()
		return fmt.Errorf("the limit of %d steps (maxSteps) is reached", sub.MaxSteps)
	}
	t.steps++
	sub.Step = t.steps
	t.mu.Unlock()
	if !sub.Background { // whose call has ended
		t.boss.emit(event.ToolUpdated{CallID: t.id, Details: &event.Details{Subagent: &sub}})
	}
	return nil
}

// follow keeps what the parent of a subagent's turn wants to know of an event. The caller
// holds t.mu; the parent's comes second. The other way round goes only turn.finish, which
// asks child.report and so child.result under the parent's lock: ended is closed by then,
// and behind that nothing gets here any more (emitLocked).
func (t *turn) follow(b event.Body) {
	switch b := b.(type) {
	case event.TextDelta:
		t.said.WriteString(b.Text)
	case event.ToolProposed:
		if said := strings.TrimSpace(t.said.String()); said != "" {
			t.saidBefore = said
		}
		t.said.Reset()
	case event.UsageReported:
		cost := b
		cost.Purpose, cost.ContextLimit, cost.OutputLimit, cost.Share = PurposeSubagent, 0, 0, nil
		if b.Cost != nil {
			total := t.boss.s.cost.add(*b.Cost)
			cost.TotalCost = &total
		}
		t.boss.emit(cost)
	}
}

// trusted says whether what would ask runs without: a subagent's parent can say so too,
// at any moment.
func (t *turn) trusted() bool {
	return t.s.log.Meta().Trust || t.boss != nil && t.boss.s.log.Meta().Trust
}

// files returns where a call's changes of files are recorded: a subagent's with the call
// it works for.
func (t *turn) files(callID string) tools.FileLog {
	if t.boss != nil {
		return fileLog{t.boss, t.id}
	}
	return fileLog{t, callID}
}

// judge asks the policy; what the parent's agent may not, its subagent may not either.
func (t *turn) judge(tc tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	v := t.policy.Judge(tc, spec, plan)
	if t.boss != nil {
		tc.Agent = t.boss.agent
		v = v.Stricter(t.policy.Judge(tc, spec, plan))
	}
	return v
}

// hidden says that the model can not call a tool.
func (t *turn) hidden(spec tools.Spec) bool {
	if spec.For != nil {
		if _, ok := spec.For(t.agent); !ok {
			return true
		}
	}
	return spec.PrimaryOnly && t.prompt.Parent != "" || t.disabled(spec)
}

// disabled says that the agent, or the one that it works for, may not use a tool.
func (t *turn) disabled(spec tools.Spec) bool {
	return t.policy.Hidden(t.agent, spec) || t.boss != nil && t.policy.Hidden(t.boss.agent, spec)
}

// noQuestions is what a model is told in place of asking the user.
const noQuestions = "This call needs the user's approval, and nobody can be asked for a subagent in the background. It did not run. Say in your result what you could not do."

// asks says whether the user can be asked about a call.
func (t *turn) asks() bool { return t.boss == nil || !t.prompt.sub.Background }
