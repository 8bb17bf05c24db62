package chat

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

type blocks []SystemBlock

func (b blocks) Blocks(context.Context, SystemQuery) ([]SystemBlock, []string) { return b, nil }

// systemRequests make a system prompt, and record nothing.
func systemRequests(t *testing.T, cfg *config.Config, h *history.History, sources ...SystemSource) *requestBuilder {
	t.Helper()
	e := &Engine{deps: Deps{Machine: Machine{OS: "Plan 9"}}}
	of := &turnContext{
		session: &Session{chatReader: chatReader{"c", e, &eventlog.Log{}}}, Snapshot: Snapshot{Config: cfg, Roots: []string{"/ws"}, System: sources}, agent: "code", ctx: t.Context(),
		rec: &turnRecord{history: h}, tools: tools.NewRegistry(), model: Model{ID: "m/m"},
	}
	of.vars = of.promptVars
	return &requestBuilder{turnContext: of, images: &imageFilter{turnContext: of}, preview: true}
}

func TestSystemOrder(t *testing.T) {
	cfg := &config.Config{Prompts: config.Prompts{Chat: "Be good on {{ osName }}.", Environment: " "}}
	made := systemRequests(t, cfg, history.New(),
		blocks{{Section: SectionVolatile, Name: "mcp", Text: "moving"}, {Section: SectionContext, Name: "a", Text: "first\n", Category: ShareAgents}, {Section: SectionRules, Name: "r1", Text: "one"}},
		blocks{{Section: SectionSkills, Name: "s", Text: "skill"}, {Section: SectionRules, Name: "r2", Text: "two"}, {Section: SectionContext, Name: "b", Text: "second"}, {Section: SectionRules, Name: "r3", Text: " \n"}},
	)
	sys := made.systemPrompt()
	want := "Be good on Plan 9.\n\n## Rules\n\none\n\ntwo\n\n## Skills\n\nskill\n\n## Workspace folders\n- /ws\n\nPaths in tool calls are absolute.\n\n## Context\n\nfirst\n\nsecond"
	if diff := cmp.Diff(want, sys.text()); diff != "" || sys.tail != "moving" {
		t.Errorf("tail %q, -want +got:\n%s", sys.tail, diff)
	}
	req := made.build()
	if req.System != want || req.SystemTail != "moving" {
		t.Errorf("request: %q, %q", req.System, req.SystemTail)
	}
	// Each block counts in its category.
	var got []string
	for _, s := range made.estimate(req) {
		if s.Tokens > 0 {
			got = append(got, s.Category)
		}
	}
	if want := []string{"System prompt", "Rules", "Skills", "AGENTS.md"}; !slices.Equal(got, want) {
		t.Errorf("categories %q, want %q", got, want)
	}
	if all, parts := estimate(req).total(), made.estimate(req).total(); parts < all-1 || parts > all+1 {
		t.Errorf("%d tokens in parts, %d as a whole", parts, all)
	}
}

// A chat keeps its system prompt unless its agent or model changes. With autoSyncSystemPrompt, a change
// of a source renews the prompt too, but not a change of skills alone.
func TestSystemDrift(t *testing.T) {
	agents := func(text string) blocks { return blocks{{Section: SectionContext, Text: text}} }
	skills := func(text string) blocks { return blocks{{Section: SectionSkills, Text: text}} }
	cfg := &config.Config{Prompts: config.Prompts{Chat: "p"}}
	auto := &config.Config{Prompts: cfg.Prompts, Chat: config.Chat{AutoSyncSystemPrompt: true}}
	kept := systemRequests(t, cfg, history.New(), agents("old"), skills("old")).systemPrompt().SystemPrompt
	for name, c := range map[string]struct {
		cfg     *config.Config
		change  func(*event.SystemPrompt)
		sources []SystemSource
		renewed bool
		changed []string
	}{
		"nothing new":          {cfg, nil, []SystemSource{agents("old"), skills("old")}, false, nil},
		"new context":          {cfg, nil, []SystemSource{agents("new"), skills("old")}, false, []string{"context"}},
		"all new":              {cfg, nil, []SystemSource{agents("new")}, false, []string{"skills", "context"}},
		"new context, in sync": {auto, nil, []SystemSource{agents("new"), skills("old")}, true, []string{"context"}},
		"new skills, in sync":  {auto, nil, []SystemSource{agents("old"), skills("new")}, false, []string{"skills"}},
		"another agent":        {cfg, func(p *event.SystemPrompt) { p.Agent = "plan" }, []SystemSource{agents("new"), skills("old")}, true, []string{"context"}},
		"another model":        {cfg, func(p *event.SystemPrompt) { p.Model = "n/n" }, []SystemSource{agents("new"), skills("old")}, true, []string{"context"}},
		"dropped":              {cfg, func(p *event.SystemPrompt) { *p = event.SystemPrompt{} }, []SystemSource{agents("new"), skills("old")}, true, nil},
	} {
		before := kept
		if c.change != nil {
			c.change(&before)
		}
		h := history.New()
		h.Add(before)
		made := systemRequests(t, c.cfg, h, c.sources...)
		fresh, _ := made.generateSystem()
		if changed := changedSections(before.Parts, fresh.Parts); c.changed != nil && !slices.Equal(changed, c.changed) {
			t.Errorf("%s: changed %q, want %q", name, changed, c.changed)
		}
		want := joinTexts(kept.Parts)
		if c.renewed {
			want = fresh.text()
		}
		if got := made.systemPrompt().text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A turn that is stopped while its system prompt is generated does not store the prompt.
func TestSystemCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	made := systemRequests(t, &config.Config{Prompts: config.Prompts{Chat: "p"}}, history.New())
	made.ctx = ctx
	if made.systemPrompt(); made.sys != nil {
		t.Error("the stopped turn has a system prompt")
	}
}
