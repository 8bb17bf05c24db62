// Package guide has the native tools with which a model reads instructions of the user when it
// needs them: skill and fetch_rule (eca-features.md 15, 17, 20). It also has the gate that refuses to
// read or change a file before the model has fetched the rules for it.
//
// The fetched rules of a chat are taken from its history (tools.Call.Rules). So they survive
// restarts with the chat, and a compaction, which removes the text of a rule, makes the rule
// unfetched again.
//
// The package does not read files or know their formats: a Source provides the instructions.
package guide

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed skill.md
var skillDoc string

//go:embed fetch_rule.md
var fetchRuleDoc string

// Skill is a set of instructions that a model can load.
type Skill struct{ Name, Dir, Body string }

// Rule is a path-scoped rule.
type Rule struct {
	ID   string
	Text string
}

// Access is how a tool is about to use a file.
type Access string

// Kinds of access.
const (
	Read   Access = "read"
	Modify Access = "modify"
)

// Source provides the user's instructions for the current turn: those for the agent and the model
// of a call.
type Source interface {
	// Skills lists the names of the skills.
	Skills() []string
	Skill(name string) (Skill, bool)
	// Rule returns the path-scoped rule with the given id; err tells why it has no text.
	Rule(call tools.Call, id string) (rule Rule, found bool, err error)
	// Applies reports whether a rule applies to a file.
	Applies(call tools.Call, id, path string) bool
	// Needed lists the ids of the rules that the model must have fetched before the given access to
	// a file.
	Needed(call tools.Call, path string, access Access) []string
}

type skillArgs struct {
	Name string `json:"name" jsonschema:"The name of the skill."`
}

type ruleArgs struct {
	ID   string `json:"id" jsonschema:"The id of the rule, exactly as it is listed."`
	Path string `json:"path" jsonschema:"The absolute path of the file that you are going to work on."`
}

// SkillTool returns the tool skill.
func SkillTool(s Source) tools.Tool {
	return tools.Definition[skillArgs]{
		Name: "skill", Description: skillDoc, Preparing: "Preparing skill", ReadOnly: true,
		Plan: func(_ context.Context, _ tools.Call, a skillArgs) (tools.Plan, error) {
			return tools.Plan{Summary: "Loading skill '" + a.Name + "'"}, nil
		},
		Run: func(_ context.Context, _ tools.Call, a skillArgs, _ tools.Sink) (tools.Result, error) {
			k, ok := s.Skill(a.Name)
			if !ok {
				return tools.Result{}, fmt.Errorf("unknown skill %q; available: %s", a.Name, strings.Join(s.Skills(), ", "))
			}
			return tools.Text(fmt.Sprintf("Skill: %s\nFolder: %s (paths in the text are relative to it)\n\n%s", k.Name, k.Dir, k.Body)), nil
		},
	}.Build()
}

// FetchRuleTool returns the tool fetch_rule.
func FetchRuleTool(s Source) tools.Tool {
	return tools.Definition[ruleArgs]{
		Name: "fetch_rule", Description: fetchRuleDoc, Preparing: "Preparing rule", ReadOnly: true,
		Plan: func(_ context.Context, _ tools.Call, a ruleArgs) (tools.Plan, error) {
			if !filepath.IsAbs(a.Path) {
				return tools.Plan{}, fmt.Errorf("INVALID_ARGS: the path %q is not absolute", a.Path)
			}
			return tools.Plan{Summary: "Fetching rule " + filepath.Base(a.ID)}, nil
		},
		Run: func(_ context.Context, call tools.Call, a ruleArgs, _ tools.Sink) (tools.Result, error) {
			r, found, err := s.Rule(call, a.ID)
			switch {
			case !found:
				return tools.Result{}, fmt.Errorf("unknown rule id %q; use an id listed under Rules", a.ID)
			case !s.Applies(call, a.ID, a.Path):
				return tools.Result{}, fmt.Errorf("the rule %s does not apply to %s", a.ID, a.Path)
			case slices.Contains(call.Rules, a.ID):
				return tools.Text("This rule was fetched before and is still in this conversation."), nil
			case err != nil:
				return tools.Result{}, err
			}
			return tools.Result{Outputs: []string{r.Text}, Details: &event.Details{Rule: &event.Rule{ID: a.ID}}}, nil
		},
	}.Build()
}

// Gate wraps a tool that uses files. It refuses a call until the model has fetched the rules that
// are enforced for this access. The refusal names them.
func Gate(t tools.Tool, access Access, s Source) tools.Tool { return &gated{t, access, s} }

type gated struct {
	tools.Tool
	access Access
	source Source
}

// Plan implements tools.Tool.
func (g *gated) Plan(ctx context.Context, call tools.Call) (tools.Plan, error) {
	plan, err := g.Tool.Plan(ctx, call)
	if err != nil {
		return plan, err
	}
	var missing []error
	for _, path := range plan.Paths {
		for _, id := range g.source.Needed(call, path, g.access) {
			if !slices.Contains(call.Rules, id) {
				missing = append(missing, fmt.Errorf("fetch_rule with id %q and path %q", id, path))
			}
		}
	}
	if len(missing) > 0 {
		return tools.Plan{}, fmt.Errorf("the call did not run: first read the rules for this file, then try again. Call: %w", errors.Join(missing...))
	}
	return plan, nil
}
