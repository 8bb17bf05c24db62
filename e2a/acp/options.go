package acp

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/e2a"
)

// Ids of what a session can be set to.
const (
	optionMode    = "mode" // the agent
	optionModel   = "model"
	optionVariant = "variant"
	optionTrust   = "trust" // calls that would ask are allowed
)

// choices are what a session is set to, and could be.
type choices struct {
	Agent    string   `json:"agent"`
	Agents   []chosen `json:"agents"`
	Model    string   `json:"model"`
	Models   []string `json:"models"`
	Variant  string   `json:"variant"`
	Variants []string `json:"variants"`
	Trust    bool     `json:"trust"`
}

type chosen struct {
	ID          string `json:"id"`
	Description string `json:"description"`
}

func readChoices(result object) choices {
	var c choices
	raw, err := json.Marshal(result)
	if err == nil {
		err = json.Unmarshal(raw, &c)
	}
	if err != nil {
		return choices{}
	}
	if c.Model != "" && !slices.Contains(c.Models, c.Model) {
		c.Models = append([]string{c.Model}, c.Models...)
	}
	return c
}

// settings is what the answer to session/new and session/load says of a session. Clients
// that know options take these, older ones the modes (A6).
func (a *agent) settings(s *session) object {
	c := s.shown()
	modes := []any{}
	for _, agent := range c.Agents {
		mode := object{"id": agent.ID, "name": title(agent.ID)}
		if agent.Description != "" {
			mode["description"] = agent.Description
		}
		modes = append(modes, mode)
	}
	return object{
		"modes":         object{"currentModeId": c.Agent, "availableModes": modes},
		"configOptions": a.options(c),
	}
}

// options are the complete list of what can be set.
func (a *agent) options(c choices) []any {
	agents, models := []any{}, []any{}
	for _, agent := range c.Agents {
		o := object{"value": agent.ID, "name": title(agent.ID)}
		if agent.Description != "" {
			o["description"] = agent.Description
		}
		agents = append(agents, o)
	}
	for _, m := range c.Models {
		models = append(models, object{"value": m, "name": m})
	}
	out := []any{selected(optionMode, "Mode", "mode", c.Agent, agents)}
	if len(models) > 0 {
		out = append(out, selected(optionModel, "Model", "model", c.Model, models))
	}
	if len(c.Variants) > 0 {
		list := []any{object{"value": noVariant, "name": "Default"}}
		for _, v := range c.Variants {
			list = append(list, object{"value": v, "name": v})
		}
		out = append(out, selected(optionVariant, "Variant", "thought_level", cmp.Or(c.Variant, noVariant), list))
	}
	if a.client.Capabilities.Value.Session.Value.Options.Value.Boolean != nil {
		out = append(out, object{
			"id": optionTrust, "name": "Auto-approve", "description": "Calls that would ask are allowed.", "type": "boolean", "currentValue": c.Trust,
		})
	}
	return out
}

// noVariant stands for no variant: a value must not be empty.
const noVariant = "-"

func selected(id, name, category, current string, options []any) object {
	return object{"id": id, "name": name, "category": category, "type": "select", "currentValue": current, "options": options}
}

// title is a name with a capital letter, as pickers show it.
func title(id string) string {
	_, n := utf8.DecodeRuneInString(id)
	return strings.ToUpper(id[:n]) + id[n:]
}

func (a *agent) setMode(c *call) (any, error) {
	var p struct {
		Mode string `json:"modeId"`
	}
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	s, err := a.named(c.Params)
	if err != nil {
		return nil, err
	}
	if p.Mode == "" {
		return nil, failure(codeParams, "modeId is missing")
	}
	if err := a.set(c, s, object{"agent": p.Mode}); err != nil {
		return nil, err
	}
	return object{}, nil
}

func (a *agent) setOption(c *call) (any, error) {
	var p struct {
		Option string          `json:"configId"`
		Value  json.RawMessage `json:"value"`
	}
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	s, err := a.named(c.Params)
	if err != nil {
		return nil, err
	}
	change, err := changeOf(p.Option, p.Value)
	if err != nil {
		return nil, err
	}
	if err := a.set(c, s, change); err != nil {
		return nil, err
	}
	return object{"configOptions": a.options(s.shown())}, nil
}

// changeOf is what config.set is told.
func changeOf(option string, value json.RawMessage) (object, error) {
	if option == optionTrust {
		var trust bool
		if json.Unmarshal(value, &trust) != nil {
			return nil, failure(codeParams, "the value of trust must be true or false")
		}
		return object{"trust": trust}, nil
	}
	var text string
	if json.Unmarshal(value, &text) != nil || text == "" {
		return nil, failure(codeParams, "the value of %q must be one of its options", option)
	}
	switch option {
	case optionMode:
		return object{"agent": text}, nil
	case optionModel:
		return object{"model": text, "variant": ""}, nil
	case optionVariant:
		if text == noVariant {
			text = ""
		}
		return object{"variant": text}, nil
	}
	return nil, failure(codeParams, "there is no option %q", option)
}

// set changes a session, and tells what is different now: a mode through the options as
// well as through the modes, for clients that show one of both.
func (a *agent) set(c *call, s *session, change object) error {
	was := s.shown()
	if v, ok := change["variant"].(string); ok && v != "" && !slices.Contains(was.Variants, v) {
		return failure(codeParams, "the model %s has no variant %q", was.Model, v)
	}
	change["sessionId"] = s.id
	if _, err := s.place.do(c.ctx, a.envelope(c, e2a.MethodConfigSet, change), nil); err != nil {
		return err
	}
	return a.tellChanges(c, s)
}

// tellChanges tells what is different from what the client knows.
func (a *agent) tellChanges(c *call, s *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := a.known(c.ctx, c, s)
	if err != nil {
		return err
	}
	before := s.told
	s.told = now
	if now.title != before.title && now.title != "" {
		if err := a.update(s, "session_info_update", object{"title": now.title}); err != nil {
			return err
		}
	}
	if now.choices.Agent != before.choices.Agent {
		if err := a.update(s, "current_mode_update", object{"currentModeId": now.choices.Agent}); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(now.choices, before.choices) {
		return a.update(s, "config_option_update", object{"configOptions": a.options(now.choices)})
	}
	return nil
}
