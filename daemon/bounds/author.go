package bounds

import (
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

// author is the authority that allows something to run.
type author int

const (
	byBuiltInRule     author = iota
	byReadsRule              // the built-in rule for commands that only read
	byWorkspaceRule          // the built-in rule for commands that stay in the workspace
	byUserConfig             // the user's own configuration, or an approval that the user had remembered
	byAutoApprove            // the user approved everything in the chat
	byWorkspaceConfig        // a file of the workspace that the user trusts
	byHand                   // the user saw it and approved
)

// callAuthor returns the authority that allows a call to run.
func callAuthor(cfg *config.Loaded, call tools.Call) author {
	switch {
	case call.Authorization.Approved:
		return byHand
	case call.Authorization.Auto:
		return byAutoApprove
	case strings.HasPrefix(call.Authorization.Rule, "remembered"):
		return byUserConfig
	}
	return ruleAuthor(cfg, call.Roots, call.Authorization.Rule)
}

// customAuthor returns the authority that allows a custom tool to run: the user if the user
// approved the call, otherwise the author of the tool's configuration.
func (b *Bounds) customAuthor(cfg *config.Loaded, name string, call tools.Call) author {
	by := callAuthor(cfg, call)
	if by != byHand && by != byWorkspaceConfig && by != byReadsRule {
		origin, _ := cfg.Origin("customTools", name)
		by = sourceAuthor(call.Roots, origin.Source)
	}
	return by
}

// ruleAuthor returns the author of a permission rule. A rule that is not in the configuration is
// built in.
func ruleAuthor(cfg *config.Loaded, roots []string, rule string) author {
	switch rule {
	case permission.RuleReads:
		return byReadsRule
	case tools.RuleWorkspace:
		return byWorkspaceRule
	}
	path := RulePath(rule)
	origin, ok := cfg.Origin(path...)
	if !ok || path == nil || origin.IsDefault() {
		return byBuiltInRule
	}
	return sourceAuthor(roots, origin.Source)
}

// RulePath returns the configuration path of a rule from its name: the list that it belongs to, and
// its selector. Names of agents and tools may contain dots.
func RulePath(rule string) []string {
	const approval = "toolCall.approval."
	var path []string
	before, rest, ok := strings.Cut(rule, approval)
	if !ok {
		return nil
	}
	if name, isAgent := strings.CutPrefix(before, "agent."); isAgent {
		path = append(path, "agent", strings.TrimSuffix(name, "."))
	}
	path = append(path, "toolCall", "approval")
	kind, selector, _ := strings.Cut(rest, ".")
	if path = append(path, kind); selector != "" {
		path = append(path, selector)
	}
	return path
}

// sourceAuthor returns the author of a configuration source: the workspace for a file in it.
func sourceAuthor(roots []string, source string) author {
	for _, root := range roots {
		if filepath.IsAbs(source) && safeio.Within(root, source) {
			return byWorkspaceConfig
		}
	}
	return byUserConfig
}
