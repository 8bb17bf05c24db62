package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/llm"
)

const modelsHelp = `Lists the configured providers, whether each has what it needs, and the models that
can be used in this directory, with what is known of them. Providers are asked for their
models, and the public catalogue of models is brought up to date, unless the
configuration says "fetchModels": false.

Tokens are those of request and answer together, and of an answer; prices are dollars per
million tokens of input, output, and reading from and writing to the cache. "-" is
unknown. The last column says where the facts come from: config is the user's
configuration; provider is what the provider says; models.dev is the public catalogue;
snapshot is what this version of eca was built with; assumed is what nobody says.
--json says it for each fact.

The exit code is 1 if no model can be used.`

func modelsCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List providers and models, and what is known of them",
		Long:  modelsHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			waiting := noticeLater(stderr, waitingForModels)
			providers, err := knownProviders(cmd.Context(), *sf, stderr)
			waiting.Stop()
			if err != nil {
				return err
			}
			show := printTable
			if asJSON {
				show = printJSON
			}
			if err := show(providers, stdout); err != nil {
				return err
			}
			if !slices.ContainsFunc(providers, func(p llm.Provider) bool { return usable(p) && len(p.Models) > 0 }) {
				fmt.Fprintln(stderr, "eca models: no model can be used; see what providers need above, or log in: eca login PROVIDER")
				return exitError{1}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// knownProviders configures eca for this directory and asks the providers.
func knownProviders(ctx context.Context, sf serverFlags, stderr io.Writer) ([]llm.Provider, error) {
	d, err := hereDaemon(sf, stderr)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	d.SyncModels(ctx)
	return d.Providers(), ctx.Err()
}

type (
	providerJSON struct {
		ID       string      `json:"id"`
		API      string      `json:"api,omitempty"`
		URL      string      `json:"url,omitempty"`
		Usable   bool        `json:"usable"`
		Missing  string      `json:"missing,omitempty"`  // before it can be used
		Unlisted string      `json:"unlisted,omitempty"` // why it did not list its models
		Models   []modelJSON `json:"models"`
	}
	modelJSON struct {
		ID string `json:"id"` // provider/model
		llm.Facts
	}
)

func printJSON(providers []llm.Provider, stdout io.Writer) error {
	out := []providerJSON{}
	for _, p := range providers {
		j := providerJSON{ID: p.ID, API: p.API, URL: p.URL, Usable: usable(p), Missing: p.Missing, Unlisted: p.Unlisted, Models: []modelJSON{}}
		for _, m := range p.Models {
			j.Models = append(j.Models, modelJSON{p.ID + "/" + m.Name, m.Facts})
		}
		out = append(out, j)
	}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]any{"providers": out})
}

func usable(p llm.Provider) bool { return p.Configured && p.Missing == "" }

func printTable(providers []llm.Provider, stdout io.Writer) error {
	models := 0
	for _, p := range providers {
		models += len(p.Models)
		switch {
		case !p.Configured:
			fmt.Fprintf(stdout, "%s: logged in, but not configured\n", p.Spelled)
		case p.Missing != "":
			fmt.Fprintf(stdout, "%s: needs %s\n", p.Spelled, p.Missing)
		case p.Unlisted != "":
			fmt.Fprintf(stdout, "%s: usable, but did not list its models: %s\n", p.Spelled, printable(p.Unlisted))
		default:
			fmt.Fprintf(stdout, "%s: usable\n", p.Spelled)
		}
	}
	if models == 0 {
		fmt.Fprintln(stdout, "No model can be used.")
		return nil
	}
	fmt.Fprintln(stdout)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tTOKENS\tANSWER\tINPUT $\tOUTPUT $\tCACHE R/W $\tREASONS\tIMAGES\tTOOLS\tSOURCE")
	for _, p := range providers {
		for _, m := range p.Models {
			fmt.Fprintln(w, strings.Join([]string{
				printable(p.Spelled + "/" + m.Name), count(m.Context), count(m.Output), dollars(m.InputCost), dollars(m.OutputCost),
				dollars(m.CacheReadCost) + "/" + dollars(m.CacheWriteCost), yesNo(m.Reasoning), yesNo(m.Images), yesNo(m.Tools), sources(m.Facts),
			}, "\t"))
		}
	}
	return w.Flush()
}

func count(f llm.Fact[int64]) string {
	if !f.Known() {
		return "-"
	}
	return strconv.FormatInt(f.Value, 10)
}

func dollars(f llm.Fact[float64]) string {
	if !f.Known() {
		return "-"
	}
	return strconv.FormatFloat(f.Value, 'f', -1, 64)
}

func yesNo(f llm.Fact[bool]) string {
	switch {
	case !f.Known():
		return "-"
	case f.Value:
		return "yes"
	}
	return "no"
}

// sources names where the facts come from, each source once.
func sources(f llm.Facts) string {
	var out []string
	for _, s := range []llm.Source{
		f.Context.Source, f.Output.Source, f.InputCost.Source, f.OutputCost.Source, f.CacheReadCost.Source, f.CacheWriteCost.Source,
		f.Reasoning.Source, f.Images.Source, f.Tools.Source,
	} {
		if s != "" && !slices.Contains(out, string(s)) {
			out = append(out, string(s))
		}
	}
	return strings.Join(out, ", ")
}
