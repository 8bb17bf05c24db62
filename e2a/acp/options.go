package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// The ids of a session's options.
const (
	optionMode    = "mode" // the agent
	optionModel   = "model"
	optionVariant = "variant"
	optionTrust   = "trust" // allow calls that would otherwise need approval
)

// option is an option of a session: a choice among several values, or a boolean.
type option struct {
	Category    string   `json:"category,omitempty"`
	Value       any      `json:"currentValue"`
	Description string   `json:"description,omitempty"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Choices     []choice `json:"options,omitempty"`
	Type        string   `json:"type"`
}

type choice struct {
	Description string `json:"description,omitempty"`
	Name        string `json:"name"`
	Value       string `json:"value"`
}

// settings describes a session in the answer to session/new and session/load. Newer clients use the
// options, older ones the modes (docs/contracts/acp-a2a.md, A6).
type settings struct {
	Options   []option `json:"configOptions"`
	Modes     modes    `json:"modes"`
	SessionID string   `json:"sessionId,omitempty"`
}

type modes struct {
	Available []mode `json:"availableModes"`
	Current   string `json:"currentModeId"`
}

type mode struct {
	Description string `json:"description,omitempty"`
	ID          string `json:"id"`
	Name        string `json:"name"`
}

func (s *session) settings() settings {
	c := s.choices()
	m := modes{[]mode{}, c.Agent}
	for _, agent := range c.Agents {
		m.Available = append(m.Available, mode{agent.Description, agent.ID, title(agent.ID)})
	}
	return settings{Options: s.options(c), Modes: m}
}

// options returns the list of options with their current values.
func (s *session) options(c turn.Choices) []option {
	var agents, models []choice
	for _, agent := range c.Agents {
		agents = append(agents, choice{agent.Description, title(agent.ID), agent.ID})
	}
	for _, m := range c.Models {
		models = append(models, choice{Name: m, Value: m})
	}
	out := []option{{ID: optionMode, Name: "Mode", Category: "mode", Type: "select", Value: c.Agent, Choices: agents}}
	if len(models) > 0 {
		out = append(out, option{ID: optionModel, Name: "Model", Category: "model", Type: "select", Value: c.Model, Choices: models})
	}
	if len(c.Variants) > 0 {
		variants := []choice{{Name: "Default", Value: noVariant}}
		for _, v := range c.Variants {
			variants = append(variants, choice{Name: v, Value: v})
		}
		out = append(out, option{
			ID: optionVariant, Name: "Variant", Category: "thought_level", Type: "select", Value: cmp.Or(c.Variant, noVariant), Choices: variants,
		})
	}
	if s.agent.clientCapabilities().Session.Value.Options.Value.Boolean != nil {
		out = append(out, option{ID: optionTrust, Name: "Auto-approve", Description: "Allow tool calls that would otherwise ask for approval.", Type: "boolean", Value: c.Trust})
	}
	return out
}

// noVariant is the value for no variant, because values must not be empty.
const noVariant = "-"

// title capitalizes a name, as pickers show it.
func title(id string) string {
	_, n := utf8.DecodeRuneInString(id)
	return strings.ToUpper(id[:n]) + id[n:]
}

func (a *agent) setMode(c *call) (any, error) {
	var p struct {
		Mode string `json:"modeId"`
	}
	s, err := a.decodeForSession(c, &p)
	if err != nil {
		return nil, err
	}
	if p.Mode == "" {
		return nil, failure(codeParams, "modeId is missing")
	}
	return empty, s.set(c.ctx, turn.Settings{Agent: p.Mode})
}

func (a *agent) setOption(c *call) (any, error) {
	var p struct {
		Option string          `json:"configId"`
		Value  json.RawMessage `json:"value"`
	}
	s, err := a.decodeForSession(c, &p)
	if err != nil {
		return nil, err
	}
	change, err := changeOf(p.Option, p.Value)
	if err != nil {
		return nil, err
	}
	if v := change.Variant; v != nil && *v != "" && !slices.Contains(s.choices().Variants, *v) {
		return nil, failure(codeParams, "the model %s has no variant %q", s.choices().Model, *v)
	}
	err = s.set(c.ctx, change)
	return optionsResult{s.options(s.choices())}, err
}

type optionsResult struct {
	Options []option `json:"configOptions"`
}

// changeOf returns the change of settings for a new value of an option.
func changeOf(id string, value json.RawMessage) (turn.Settings, error) {
	if id == optionTrust {
		var trust bool
		if json.Unmarshal(value, &trust) != nil {
			return turn.Settings{}, failure(codeParams, "the value of trust must be true or false")
		}
		return turn.Settings{Trust: &trust}, nil
	}
	text, noVariantSet := "", ""
	if json.Unmarshal(value, &text) != nil || text == "" {
		return turn.Settings{}, failure(codeParams, "the value of %q must be a non-empty string", id)
	}
	switch id {
	case optionMode:
		return turn.Settings{Agent: text}, nil
	case optionModel:
		return turn.Settings{Model: text, Variant: &noVariantSet}, nil
	case optionVariant:
		if text == noVariant {
			text = noVariantSet
		}
		return turn.Settings{Variant: &text}, nil
	}
	return turn.Settings{}, failure(codeParams, "unknown option %q", id)
}

// set changes a session and shows the differences.
func (s *session) set(ctx context.Context, to turn.Settings) error {
	if _, err := s.instance.turns.Set(ctx, s.id, to); err != nil {
		return s.instance.errorFor(ctx, err)
	}
	return s.showChanges(ctx)
}

// shownState is the state of a session that the client was last shown.
type shownState struct {
	title   string
	choices turn.Choices
}

// current reads the current settings of the session.
func (s *session) current(ctx context.Context) (shownState, error) {
	info, c, err := s.instance.turns.Choices(ctx, s.id)
	if c.Model != "" && !slices.Contains(c.Models, c.Model) {
		c.Models = append([]string{c.Model}, c.Models...)
	}
	return shownState{info.Title, c}, s.instance.errorFor(ctx, err)
}

// choices returns the choices that the client was shown.
func (s *session) choices() turn.Choices {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.choices
}

// showTitle shows a title if it has changed.
func (s *session) showTitle(title string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if title == "" || title == s.shown.title {
		return nil
	}
	s.shown.title = title
	return s.update(update{Kind: "session_info_update", Title: title})
}

// showChanges shows the title and the settings that changed since the client was last shown them. It
// sends a changed mode both as a mode and as an option, because some clients show only one of them.
func (s *session) showChanges(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.current(ctx)
	if err != nil {
		return err
	}
	before := s.shown
	s.shown = now
	var changes []update
	if now.title != before.title && now.title != "" {
		changes = append(changes, update{Kind: "session_info_update", Title: now.title})
	}
	if now.choices.Agent != before.choices.Agent {
		changes = append(changes, update{Kind: "current_mode_update", Mode: now.choices.Agent})
	}
	if !reflect.DeepEqual(now.choices, before.choices) {
		changes = append(changes, update{Kind: "config_option_update", Options: s.options(now.choices)})
	}
	for _, u := range changes {
		if err := s.update(u); err != nil {
			return err
		}
	}
	return nil
}
