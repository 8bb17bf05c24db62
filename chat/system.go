package chat

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/config"
)

// Section is a section of the system prompt. It consists of blocks (eca-features.md 10).
type Section int

// Sections, in their order.
const (
	sectionPrompt Section = iota // the agent's own prompt
	SectionRules
	SectionSkills
	sectionEnvironment
	sectionWorkspace
	SectionContext // AGENTS.md and other context that the user configured
	// SectionVolatile is for text that may change from turn to turn, such as the instructions of
	// running MCP servers. It is generated for each turn, comes last and is not stored with the
	// chat.
	SectionVolatile
)

// name returns the section's name in notices about changes.
func (s Section) name() string {
	return [...]string{"prompt", "rules", "skills", "environment", "workspace folders", "context", "volatile"}[s]
}

// heading returns the heading above the first block of a section; empty if the block has its own.
func (s Section) heading() string {
	switch s {
	case SectionRules:
		return "## Rules\n\n"
	case SectionSkills:
		return "## Skills\n\n"
	case SectionContext:
		return "## Context\n\n"
	}
	return ""
}

func (s Section) category() string {
	switch s {
	case SectionRules:
		return shareRules
	case SectionSkills:
		return shareSkills
	}
	return shareSystem
}

// SystemBlock is a piece of the system prompt.
type SystemBlock struct {
	Section  Section
	Name     string // path or description, for the user
	Category string // category of the Share: ShareAgents, or empty for the section's category
	Text     string // without the heading of the section
}

// SystemQuery describes the turn that a system prompt is generated for.
type SystemQuery struct {
	Agent    string
	Subagent bool   // the agent runs as a subagent
	Model    string // full id
	Roots    []string
	Config   *config.Config
	Enabled  func(tool string) bool // reports whether the model may call a tool, by its full name
}

// SystemSource provides blocks of the system prompt. It is called once per turn, before the first
// request, so it must be fast. It must return the same blocks in the same order while nothing has
// changed. Problems describe what had to be left out; the user sees them when the prompt is pinned.
type SystemSource interface {
	Blocks(ctx context.Context, q SystemQuery) (blocks []SystemBlock, problems []string)
}

// system is the system prompt of a turn.
type system struct {
	event.SystemPrompt
	tail string // the volatile section, which is not stored
}

func (s *system) text() string { return joinTexts(s.Parts) }

func joinTexts(parts []event.SystemPart) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}

// systemPrompt returns the system prompt of the turn: the pinned one, unless that is for another
// agent or model. If a new one would be different, the user is notified once.
func (r *requestBuilder) systemPrompt() *system {
	if r.sys != nil {
		return r.sys
	}
	generated, problems := r.generateSystem()
	if r.ctx.Err() != nil {
		return generated // it may be incomplete
	}
	r.sys = generated
	var pinned event.SystemPrompt
	var reported string // digest of the newer prompt that the user was notified of last
	r.rec.withHistory(func(h *history.History) { pinned, reported = h.System() })
	sameAgentAndModel := len(pinned.Parts) > 0 && pinned.Agent == generated.Agent && pinned.Model == generated.Model
	changed := changedSections(pinned.Parts, generated.Parts)
	// Changed skills alone are not worth the loss of the provider's cache.
	renew := r.Config.Chat.AutoSyncSystemPrompt && slices.ContainsFunc(changed, func(section string) bool { return section != SectionSkills.name() })
	switch {
	case !sameAgentAndModel || renew:
		r.emitUnlessPreview(generated.SystemPrompt)
		if len(problems) > 0 {
			r.emitUnlessPreview(event.Notice{Text: "Left out of the system prompt: " + strings.Join(problems, "; ") + "\n\n"})
		}
	case len(changed) > 0:
		if signature := signature(generated.Parts); signature != reported {
			r.emitUnlessPreview(event.Notice{System: signature, Text: "Changed since this chat began: " + strings.Join(changed, ", ") +
				". The system prompt stays as it is, which keeps it in the provider's cache; `/sync-system-prompt` renews it.\n\n"})
		}
		fallthrough
	default:
		r.sys.SystemPrompt = pinned
	}
	return r.sys
}

// emitUnlessPreview emits an event, unless the request is only a preview.
func (r *requestBuilder) emitUnlessPreview(b event.Body) {
	if !r.preview {
		r.rec.emit(b)
	}
}

// generateSystem generates the system prompt.
func (r *requestBuilder) generateSystem() (*system, []string) {
	agent := r.Config.Agents[r.agent]
	own := cmp.Or(agent.SystemPrompt, agent.Prompts.Chat, r.Config.Prompts.Chat)
	blocks := []SystemBlock{
		{Section: sectionPrompt, Name: "prompt of agent " + r.agent, Text: r.render(own)},
		{Section: sectionEnvironment, Name: "environment", Text: r.render(r.Config.Prompts.Environment)},
		{Section: sectionWorkspace, Name: "workspace folders", Text: workspaceText(r.Roots)},
	}
	q := SystemQuery{
		Agent: r.agent, Subagent: r.isSubagent(), Model: r.model.ID, Roots: r.Roots, Config: r.Config,
		Enabled: func(tool string) bool { return r.vars()["toolEnabled_"+tool] == true },
	}
	var problems []string
	for _, source := range r.System {
		more, bad := source.Blocks(r.ctx, q)
		blocks, problems = append(blocks, more...), append(problems, bad...)
	}
	if text := r.session.instructions.Load(); text != nil {
		blocks = append(blocks, SystemBlock{Section: SectionVolatile, Name: "hooks", Text: *text})
	}
	slices.SortStableFunc(blocks, func(a, b SystemBlock) int { return int(a.Section - b.Section) })
	out := &system{SystemPrompt: event.SystemPrompt{Agent: r.agent, Model: r.model.ID}}
	var tail []string
	last := sectionPrompt
	for _, b := range blocks {
		text := strings.TrimSpace(b.Text)
		if text == "" {
			continue
		}
		if b.Section == SectionVolatile {
			tail = append(tail, text)
			continue
		}
		if b.Section != last {
			text = b.Section.heading() + text
		}
		last = b.Section
		out.Parts = append(out.Parts, event.SystemPart{
			Name: b.Name, Section: b.Section.name(), Category: cmp.Or(b.Category, b.Section.category()), Text: text,
		})
	}
	out.tail = strings.Join(tail, "\n\n")
	return out, problems
}

// workspaceText lists the workspace folders for the model.
func workspaceText(roots []string) string {
	var b strings.Builder
	b.WriteString("## Workspace folders\n")
	for _, r := range roots {
		b.WriteString("- " + r + "\n")
	}
	if len(roots) == 0 {
		b.WriteString("(none)\n")
	}
	b.WriteString("\nPaths in tool calls are absolute.")
	return b.String()
}

// changedSections returns the names of the sections that differ.
func changedSections(pinned, fresh []event.SystemPart) []string {
	text := func(parts []event.SystemPart, section string) string {
		return joinTexts(slices.DeleteFunc(slices.Clone(parts), func(p event.SystemPart) bool { return p.Section != section }))
	}
	var out []string
	for p := sectionPrompt; p < SectionVolatile; p++ {
		if text(pinned, p.name()) != text(fresh, p.name()) {
			out = append(out, p.name())
		}
	}
	return out
}

// signature returns a digest of a system prompt.
func signature(parts []event.SystemPart) string {
	sum := sha256.Sum256([]byte(joinTexts(parts)))
	return hex.EncodeToString(sum[:8])
}

// UnpinSystemPrompt unpins the system prompt, so that the next request generates it again.
func (s *Session) UnpinSystemPrompt() *Pending[event.Seq] {
	return edit(s, func() error {
		s.log.Append("", event.SystemPrompt{})
		s.history = nil // read it again: the running turn, which runs the command, owns the current one
		return nil
	})
}
