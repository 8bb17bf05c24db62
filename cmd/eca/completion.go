package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/daemon"
)

// candidates returns the values that a shell offers for a flag or an argument.
type candidates func(ctx context.Context) []cobra.Completion

// addCompletions registers shell completions for flags and arguments, with values from the
// configuration and the stored chats. Completion starts no programs and sends no requests, because a
// user who presses Tab expects neither; only models that are already known are offered. After an
// error, nothing is offered.
func addCompletions(root *cobra.Command, sf *serverFlags) {
	configured := func(values func(*daemon.Daemon) []cobra.Completion) candidates {
		return func(context.Context) (found []cobra.Completion) {
			_ = withConfig(*sf, io.Discard, func(d *daemon.Daemon) error {
				for _, name := range values(d) {
					found = append(found, printable(name))
				}
				return nil
			})
			return found
		}
	}
	servers := configured(func(d *daemon.Daemon) []cobra.Completion {
		return slices.Sorted(maps.Keys(d.Config().MCPServers))
	})
	flags := map[string]candidates{
		"approve": func(context.Context) []cobra.Completion {
			return []cobra.Completion{approveAsk, approveAutoEdit, approveWorkspace, approveAll, approveNone}
		},
		"log-level": func(context.Context) []cobra.Completion { return []cobra.Completion{"error", "warn", "info", "debug"} },
		"agent":     configured(agentNames),
		"model":     configured(modelNames),
		"chat":      chatIDs,
	}
	arguments := map[string]candidates{
		"eca chats show": chatIDs, "eca chats export": chatIDs, "eca chats pin": chatIDs, "eca chats unpin": chatIDs, "eca chats delete": chatIDs,
		"eca mcp test": servers, "eca mcp remove": servers, "eca mcp allow": servers,
	}
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for name, values := range flags {
			if cmd.Flags().Lookup(name) != nil || cmd.PersistentFlags().Lookup(name) != nil {
				_ = cmd.RegisterFlagCompletionFunc(name, offer(values)) // fails only for flags that do not exist
			}
		}
		if values, ok := arguments[cmd.CommandPath()]; ok {
			cmd.ValidArgsFunction = offer(values)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
}

// offer returns all values. The completion scripts of the shells filter them by the current word and
// quote them.
func offer(values candidates) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return values(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

func agentNames(d *daemon.Daemon) []cobra.Completion {
	return d.Config().PrimaryAgents()
}

func modelNames(d *daemon.Daemon) []cobra.Completion {
	var names []cobra.Completion
	for _, p := range d.Providers() {
		if !usable(p) {
			continue
		}
		for _, m := range p.Models {
			names = append(names, p.ID+"/"+m.Name)
		}
	}
	slices.Sort(names)
	return names
}

// chatIDs returns the ids of the stored chats, the last updated first, with their titles.
func chatIDs(ctx context.Context) []cobra.Completion {
	var ids []cobra.Completion
	_ = readStore(io.Discard, func(s *store.Store) error {
		list, err := s.Chats(ctx, nil)
		for _, c := range list {
			ids = append(ids, cobra.CompletionWithDesc(printable(c.ID), printable(c.Title)))
		}
		return err
	})
	return ids
}
