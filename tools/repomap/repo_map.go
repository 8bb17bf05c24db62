// Package repomap has the native tool repo_map, which shows a model the definitions in a
// repository. The package defines the tool's parameters and the size limits of maps. It does not
// make the maps: a Mapper does.
package repomap

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed repo_map.md
var repoMapDoc string

// Budgets in tokens.
const (
	defaultBudget = 4000
	minBudget     = 100
	maxBudget     = 30_000
)

// Mapper makes maps.
type Mapper interface {
	// RepoMap returns a map of the folders in at most the given number of tokens. The focus
	// consists of names and of paths of files and folders.
	RepoMap(ctx context.Context, roots, focus []string, tokens int) (string, error)

	// FindDefinitions returns the definitions that match a query, best first, one per line with
	// path and line, in at most the given number of tokens; empty if nothing matches.
	FindDefinitions(ctx context.Context, roots []string, query string, focus []string, tokens int) (string, error)
}

type args struct {
	Query  string   `json:"query,omitempty" jsonschema:"Instead of a map, list the definitions with this name, a qualified name (Basket.AddItem) or words of one (add item), best first, each with its file and line."`
	Focus  []string `json:"focus,omitempty" jsonschema:"Paths of files or directories, names of definitions, or words in such names: related definitions come first."`
	Budget int      `json:"budget,omitempty" jsonschema:"The size of the map in tokens, 100 to 30000 (default: 4000)."`
}

// Tools returns the tools of this package.
func Tools(m Mapper) []tools.Tool {
	return []tools.Tool{tools.Definition[args]{
		ReadOnly: true, Name: "repo_map", Description: repoMapDoc, Preparing: "Mapping the repository",
		Plan: func(_ context.Context, call tools.Call, a args) (tools.Plan, error) {
			switch {
			case len(call.Roots) == 0:
				return tools.Plan{}, fmt.Errorf("there is no workspace folder to make a map of")
			case a.Budget != 0 && (a.Budget < minBudget || a.Budget > maxBudget):
				return tools.Plan{}, fmt.Errorf("INVALID_ARGS: budget must be %d to %d, not %d", minBudget, maxBudget, a.Budget)
			}
			summary := "Mapping the repository"
			if a.Query != "" {
				summary = "Finding definitions of " + a.Query
			}
			if len(a.Focus) > 0 {
				summary += ": " + strings.Join(a.Focus, ", ")
			}
			return tools.Plan{Summary: summary, Paths: call.Roots}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a args, _ tools.Sink) (tools.Result, error) {
			if a.Budget == 0 {
				a.Budget = defaultBudget
			}
			if a.Query != "" {
				text, err := m.FindDefinitions(ctx, call.Roots, a.Query, a.Focus, a.Budget)
				switch {
				case err != nil:
					return tools.Result{}, err
				case text == "":
					return tools.Text(fmt.Sprintf("No definition in the workspace matches %q. Search the files with grep: it may be used without being defined here.", a.Query)), nil
				}
				return tools.Text(text), nil
			}
			text, err := m.RepoMap(ctx, call.Roots, a.Focus, a.Budget)
			switch {
			case err != nil:
				return tools.Result{}, err
			case text == "":
				return tools.Text("There is no source code in the workspace that could be mapped."), nil
			}
			return tools.Text(text), nil
		},
	}.Build()}
}
