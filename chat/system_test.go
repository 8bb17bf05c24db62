package chat

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

type blocks []SystemBlock

func (b blocks) Blocks(context.Context, SystemQuery) ([]SystemBlock, []string) { return b, nil }

// systemTurn is a turn that can make a system prompt, and records nothing.
func systemTurn(t *testing.T, cfg *config.Config, h *history, sources ...SystemSource) *turn {
	t.Helper()
	e := &Engine{deps: Deps{System: sources, Machine: Machine{OS: "Plan 9"}}}
	out := &turn{
		s: &Session{id: "c", eng: e, log: &Log{}}, cfg: cfg, agent: "code", ctx: t.Context(), quiet: true,
		history: h, tools: tools.NewRegistry(), roots: []string{"/ws"}, model: Model{ID: "m/m"},
	}
	out.vars = out.promptVars
	return out
}

func TestSystemOrder(t *testing.T) {
	cfg := &config.Config{Prompts: config.Prompts{Chat: "Be good on {{ osName }}.", Environment: " "}}
	turn := systemTurn(t, cfg, newHistory(),
		blocks{{Place: PlaceVolatile, Name: "mcp", Text: "moving"}, {Place: PlaceContext, Name: "a", Text: "first\n", Category: ShareAgents}, {Place: PlaceRules, Name: "r1", Text: "one"}},
		blocks{{Place: PlaceSkills, Name: "s", Text: "skill"}, {Place: PlaceRules, Name: "r2", Text: "two"}, {Place: PlaceContext, Name: "b", Text: "second"}, {Place: PlaceRules, Name: "r3", Text: " \n"}},
	)
	sys := turn.systemPrompt()
	want := "Be good on Plan 9.\n\n## Rules\n\none\n\ntwo\n\n## Skills\n\nskill\n\n## Workspace folders\n- /ws\n\nPaths in tool calls are absolute.\n\n## Context\n\nfirst\n\nsecond"
	if diff := cmp.Diff(want, sys.text()); diff != "" || sys.tail != "moving" {
		t.Errorf("tail %q, -want +got:\n%s", sys.tail, diff)
	}
	req := turn.build()
	if req.System != want || req.SystemTail != "moving" {
		t.Errorf("request: %q, %q", req.System, req.SystemTail)
	}
	// Each block counts in its category.
	var got []string
	for _, s := range turn.estimate(req) {
		if s.Tokens > 0 {
			got = append(got, s.Category)
		}
	}
	if want := []string{"System prompt", "Rules", "Skills", "AGENTS.md"}; !slices.Equal(got, want) {
		t.Errorf("categories %q, want %q", got, want)
	}
	if all, parts := estimate(req).total(), turn.estimate(req).total(); parts < all-1 || parts > all+1 {
		t.Errorf("%d tokens in parts, %d as a whole", parts, all)
	}
}

// What is kept stays, unless the agent or the model is another, or the configuration wants
// each change; and even then not for skills alone.
func TestSystemDrift(t *testing.T) {
	agents := func(text string) blocks { return blocks{{Place: PlaceContext, Text: text}} }
	skills := func(text string) blocks { return blocks{{Place: PlaceSkills, Text: text}} }
	cfg := &config.Config{Prompts: config.Prompts{Chat: "p"}}
	auto := &config.Config{Prompts: cfg.Prompts, Chat: config.Chat{AutoSyncSystemPrompt: true}}
	kept := systemTurn(t, cfg, newHistory(), agents("old"), skills("old")).systemPrompt().SystemPrompt
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
		h := newHistory()
		h.add(before)
		turn := systemTurn(t, c.cfg, h, c.sources...)
		fresh, _ := turn.makeSystem()
		if changed := changedPlaces(before.Parts, fresh.Parts); c.changed != nil && !slices.Equal(changed, c.changed) {
			t.Errorf("%s: changed %q, want %q", name, changed, c.changed)
		}
		want := joinTexts(kept.Parts)
		if c.renewed {
			want = fresh.text()
		}
		if got := turn.systemPrompt().text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A turn that is stopped while its prompt is made keeps nothing of it.
func TestSystemCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	turn := systemTurn(t, &config.Config{Prompts: config.Prompts{Chat: "p"}}, newHistory())
	turn.ctx = ctx
	if turn.systemPrompt(); turn.sys != nil {
		t.Error("kept")
	}
}
