package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
)

const configHelp = `Shows, checks and describes the configuration that applies to this directory. Commands in it
(${cmd:...}) are not run.`

const checkHelp = `Checks the configuration of this directory for files that do not parse, unknown keys, values of the
wrong type or out of range, agents and providers that do not exist, dynamic strings that cannot be
resolved, models that their providers do not list, and files and folders of hooks, rules, commands
and skills that do not exist (except for relative paths in your own files: they may be meant for
other directories).
Files of the workspace that are not trusted are checked as if they were trusted. Providers are asked
only about models that the configuration names, for at most 5 seconds.

Each line has a place (file:line:column), a severity and the problem:
  error    the setting does not work
  warning  the setting has no effect, or probably not the intended one
  note     the setting works, but has a newer name

Exit codes: 0 nothing but notes; 1 something else was found, or eca failed.`

const showHelp = `Prints the effective configuration as JSON, or the value at KEY: keys joined with dots, as in
providers.openai.url; quote a key that contains dots. Secrets, and values from commands, files and
the environment, are not shown.

--origin prints one line for each value, with its source.`

func configCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show, check or describe the configuration",
		Long:  configHelp,
	}
	var asJSON bool
	check := &cobra.Command{
		Use: "check", SuggestFor: []string{"validate", "verify", "lint"},
		Short: "Report the problems in the configuration, and where they are",
		Long:  checkHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withConfig(*sf, stderr, func(d *daemon.Daemon) error { return checkConfig(cmd.Context(), d, asJSON, stdout) })
		},
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	var origin bool
	show := &cobra.Command{
		Use:   "show [KEY]",
		Short: "Print the effective configuration, or a part of it",
		Long:  showHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			var path []string
			if len(args) > 0 {
				var err error
				if path, err = config.ParseKeyPath(args[0]); err != nil {
					return err
				}
			}
			return withConfig(*sf, stderr, func(d *daemon.Daemon) error { return showConfig(d.Config(), path, origin, stdout) })
		},
	}
	show.Flags().BoolVar(&origin, "origin", false, "say where each value comes from")
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of configuration files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			raw, err := config.Schema()
			if err != nil {
				return err
			}
			_, err = stdout.Write(raw)
			return err
		},
	}
	cmd.AddCommand(show, check, schema)
	return cmd
}

// listPatience bounds the time that providers may take to list their models.
const listPatience = 5 * time.Second

func checkConfig(ctx context.Context, d *daemon.Daemon, asJSON bool, stdout io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	found := slices.Concat(withUntrusted(d), d.Misnamed(), missingPrograms(d.Config()), d.UnlistedModels(ctx))
	bad := slices.ContainsFunc(found, func(f config.Finding) bool { return f.Severity != config.SeverityNote })
	var err error
	if asJSON {
		if found == nil {
			found = []config.Finding{}
		}
		enc := json.NewEncoder(stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		err = enc.Encode(map[string]any{"ok": !bad, "findings": found})
	} else {
		for _, f := range found {
			_, writeErr := fmt.Fprintln(stdout, f)
			err = errors.Join(err, writeErr)
		}
		if len(found) == 0 {
			_, err = fmt.Fprintln(stdout, "No problems.")
		}
	}
	if err == nil && bad {
		err = exitError{1}
	}
	return err
}

// withUntrusted returns the findings about the configuration and about untrusted files, among them
// rules, skills and commands, sorted by position. A finding about an untrusted file is dropped if the
// configuration has one of the same severity at the same position.
func withUntrusted(d *daemon.Daemon) []config.Finding {
	base := d.Config().Findings()
	found := slices.Clone(base)
	for _, u := range d.Extensions().Units { // those of the configuration are among its findings
		found = append(found, u.Withheld()...)
	}
	for _, f := range d.UntrustedMistakes() {
		same := func(other config.Finding) bool { return other.Place() == f.Place() && other.Severity == f.Severity }
		if !slices.ContainsFunc(base, same) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b config.Finding) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), a.Line-b.Line, a.Column-b.Column)
	})
	return found
}

// missingPrograms returns warnings about MCP servers whose programs cannot be started.
func missingPrograms(cfg *config.Loaded) (out []config.Finding) {
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		s, path := cfg.MCPServers[name], []string{"mcpServers", name, "command"}
		why := startProblem(s)
		if script := missingScript(s); why == "" || s.Disabled || script != "" && !filepath.IsAbs(script) { // it may be relative to another folder
			continue
		}
		o, _ := cfg.Origin(path...)
		key := config.KeyPath(path)
		out = append(out, config.Finding{Source: o.Source, Line: o.Line, Column: o.Column, Key: key, Severity: config.SeverityWarning, Message: key + ": " + why})
	}
	return out
}

func showConfig(cfg *config.Loaded, path []string, origin bool, stdout io.Writer) error {
	values, err := cfg.ValuesAt(path)
	var unset *config.UnsetError
	switch {
	case errors.As(err, &unset) && unset.Unknown && unset.Meant == "":
		return fmt.Errorf("%w; `eca config schema` describes all keys", err)
	case err != nil:
		return err
	}
	if !origin {
		enc := json.NewEncoder(stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(config.Tree(values, path))
	}
	for _, v := range values {
		if _, err := fmt.Fprintf(stdout, "%s = %s  // %s\n", config.KeyPath(v.Path), v.Text(), v.Origin); err != nil {
			return err
		}
	}
	return nil
}
