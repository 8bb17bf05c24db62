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
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/llm"
)

const modelsHelp = `Lists the configured providers, whether each is ready, and the models that you can use in this
directory. eca first asks the providers for their models and updates the public catalogue of
models, unless the configuration says "fetchModels": false.

Columns, with "-" for what is unknown:

  TOKENS      the most that a request and its answer can have together
  ANSWER      the most that an answer can have
  INPUT $, OUTPUT $, CACHE R/W $
              dollars per million tokens; the last one for reading from and writing to the cache
  REASONS, IMAGES, TOOLS
              whether the model can do this
  SOURCE      where these facts come from

The source is config (your configuration), provider (the provider's list),
models.dev (the public catalogue), snapshot (the list built into this version), or assumed (a
default, because no source has them). --json names the source of each fact.

The exit code is 1 if no model can be used.`

func modelsCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List providers and models, and what is known of them",
		Long:  modelsHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := daemonShowingMistakes(*sf, cmd, stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			if notice := d.TrustNotice(); notice != "" {
				fmt.Fprintln(stderr, notice)
			}
			shown, err := listModels(cmd.Context(), d, asJSON, stdout, stderr)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(shown, func(p llm.Provider) bool { return usable(p) && len(p.Models) > 0 }) {
				fmt.Fprintln(stderr, "eca models: no model can be used; see above what providers need, or log in: eca login PROVIDER")
				return exitError{1}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// listModels fetches the model lists of the providers and prints them. With asJSON it prints one
// document. Otherwise, if some providers are slow, it prints the lists of the others early.
func listModels(ctx context.Context, d *daemon.Daemon, asJSON bool, stdout, stderr io.Writer) ([]llm.Provider, error) {
	synced := make(chan struct{})
	go func() {
		defer close(synced)
		d.SyncModels(ctx)
	}()
	printed := map[string]bool{}
	select {
	case <-synced:
	case <-time.After(noticeAfter):
		var ready []llm.Provider
		var waiting []string
		for _, p := range d.Providers() {
			if p.FetchingModels {
				waiting = append(waiting, p.Spelled)
			} else {
				ready = append(ready, p)
			}
		}
		if len(waiting) > 0 && !asJSON {
			if err := printTable(ready, stdout); err != nil {
				return nil, err
			}
			for _, p := range ready {
				printed[p.ID] = true
			}
		}
		what := waitingForModels
		if len(waiting) > 0 {
			what = "Waiting for " + printable(strings.Join(waiting, ", ")) + " to list models"
		}
		fmt.Fprintln(stderr, "⏳ "+what)
		<-synced
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all := d.Providers()
	if asJSON {
		return all, printJSON(all, stdout)
	}
	return all, printTable(slices.DeleteFunc(slices.Clone(all), func(p llm.Provider) bool { return printed[p.ID] }), stdout)
}

type (
	providerJSON struct {
		ID       string      `json:"id"`
		API      string      `json:"api,omitempty"`
		URL      string      `json:"url,omitempty"`
		Usable   bool        `json:"usable"`
		Missing  string      `json:"missing,omitempty"`  // why it cannot be used yet
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
		j := providerJSON{ID: p.ID, API: p.API, URL: p.URL, Usable: usable(p), Missing: p.Missing, Unlisted: p.ListError, Models: []modelJSON{}}
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

func usable(p llm.Provider) bool { return p.Configured && p.Missing == "" && !p.KeyRefused }

func printTable(providers []llm.Provider, stdout io.Writer) error {
	models := 0
	for _, p := range providers {
		if usable(p) {
			models += len(p.Models)
		}
		switch {
		case !p.Configured:
			fmt.Fprintf(stdout, "%s: logged in, but not configured\n", p.Spelled)
		case p.Missing != "":
			fmt.Fprintf(stdout, "%s: needs %s\n", p.Spelled, p.Missing)
		case p.KeyRefused:
			fmt.Fprintf(stdout, "%s: not usable: %s\n", p.Spelled, printable(p.ListError))
		case p.ListError != "":
			fmt.Fprintf(stdout, "%s: usable, but did not list its models: %s\n", p.Spelled, printable(p.ListError))
		default:
			fmt.Fprintf(stdout, "%s: usable\n", p.Spelled)
		}
	}
	if models == 0 {
		return nil
	}
	fmt.Fprintln(stdout)
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MODEL\tTOKENS\tANSWER\tINPUT $\tOUTPUT $\tCACHE R/W $\tREASONS\tIMAGES\tTOOLS\tSOURCE")
	for _, p := range providers {
		if !usable(p) {
			continue
		}
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

// sources names the sources of the facts, each once.
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
