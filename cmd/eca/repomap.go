package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/repomap"
)

const repomapHelp = `Prints a map of the repository in DIR (default: this directory): its most important files with the
signatures of their definitions, as many as fit into a budget of tokens (four bytes each). Models
see the same map through the tool repo_map.

--focus names files, directories or definitions; related files come first.
--query lists definitions instead of a map, best first: those with this name
(AddItem), with this qualified name (Basket.AddItem), or whose name has these words ("add item").
--json prints all files, best first, each with its rank and all its definitions; with
--query all definitions that were found.`

func repomapCommand(stdout, stderr io.Writer) *cobra.Command {
	var (
		budget int
		focus  []string
		query  string
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "repomap [DIR]",
		Short: "Print a map of a repository",
		Long:  repomapHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			if budget <= 0 {
				return usage.Errorf("--budget must be above 0, not %d", budget)
			}
			m, err := makeMap(cmd.Context(), dir, focus)
			if err != nil {
				return err
			}
			for _, name := range m.Unmatched {
				fmt.Fprintf(stderr, "eca: --focus %s: no file, directory or definition has this name\n", printable(name))
			}
			if query != "" {
				return printDefinitions(m, query, budget, asJSON, stdout)
			}
			if asJSON {
				return printMapJSON(m, stdout)
			}
			text := m.Text(budget)
			if text == "" {
				return errors.New("nothing to show: there is no source code, or the budget is too small for one file")
			}
			_, err = io.WriteString(stdout, text)
			return err
		},
	}
	cmd.Flags().IntVar(&budget, "budget", 4000, "tokens the map may have")
	cmd.Flags().StringArrayVar(&focus, "focus", nil, "a path or a name; may be repeated")
	cmd.Flags().StringVar(&query, "query", "", "a name, or words of one: list the definitions that have it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func makeMap(ctx context.Context, dir string, focus []string) (*repomap.Map, error) {
	if _, err := workingDir(); err != nil && !filepath.IsAbs(dir) {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	x := repomap.New(repomap.Options{CacheDir: settings.CacheDir(os.Getenv), Git: "git"})
	defer x.Close()
	return x.Map(ctx, dir, repomap.Focus{Paths: focus})
}

type (
	mapJSON struct {
		Root  string        `json:"root"`
		Cut   bool          `json:"cut,omitempty"` // some files were not read
		Files []mapFileJSON `json:"files"`
	}
	mapFileJSON struct {
		Path        string              `json:"path"`
		Language    string              `json:"language"`
		Rank        float64             `json:"rank"`
		Definitions []mapDefinitionJSON `json:"definitions"`
	}
	mapDefinitionJSON struct {
		Name      string `json:"name"`
		Kind      string `json:"kind"`
		Line      int    `json:"line"`
		Signature string `json:"signature"`
	}
)

func printMapJSON(m *repomap.Map, stdout io.Writer) error {
	out := mapJSON{Root: m.Root, Cut: m.Cut, Files: make([]mapFileJSON, len(m.Files))}
	for i, f := range m.Files {
		out.Files[i] = mapFileJSON{f.Path, f.Language, f.Rank, make([]mapDefinitionJSON, len(f.Definitions))}
		for j, d := range f.Definitions {
			out.Files[i].Definitions[j] = mapDefinitionJSON{d.Name, d.Kind.String(), d.Line, d.Signature}
		}
	}
	return printIndented(out, stdout)
}

type hitJSON struct {
	Path string `json:"path"`
	In   string `json:"in,omitempty"` // the enclosing definitions
	mapDefinitionJSON
}

// printDefinitions prints the definitions of a map that match a query.
func printDefinitions(m *repomap.Map, query string, budget int, asJSON bool, stdout io.Writer) error {
	hits := m.Find(query)
	if asJSON {
		out := make([]hitJSON, len(hits))
		for i, h := range hits {
			out[i] = hitJSON{h.Path, h.In, mapDefinitionJSON{h.Name, h.Kind.String(), h.Line, h.Signature}}
		}
		return printIndented(out, stdout)
	}
	if len(hits) == 0 {
		return fmt.Errorf("no definition matches %q: try a part of the name, or other words", query)
	}
	_, err := io.WriteString(stdout, repomap.HitsText(hits, budget))
	return err
}

func printIndented(value any, stdout io.Writer) error {
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}
