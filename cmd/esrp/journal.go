package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// stateFlag adds --state, and returns a function that returns the directory to use. The command fails
// if the directory of the flag does not exist, or if neither the flag nor the environment names one.
func stateFlag(c *cobra.Command) func() string {
	state := c.PersistentFlags().String("state", "", "eca's state directory; default: $XDG_STATE_HOME/eca")
	c.PersistentPreRunE = func(*cobra.Command, []string) error {
		if *state != "" {
			if _, err := os.Stat(*state); err != nil {
				return &dataError{"Failed to read the journal", err}
			}
			return nil
		}
		if _, err := os.UserHomeDir(); err != nil && os.Getenv("XDG_STATE_HOME") == "" {
			return fmt.Errorf("cannot find eca's state directory: %w; set HOME, XDG_STATE_HOME or --state", err)
		}
		return nil
	}
	return func() string {
		if *state != "" {
			return *state
		}
		return settings.StateDir(os.Getenv)
	}
}

func journalCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "journal",
		Short: "The record of model and tool calls: check, show, export",
	}
	state := stateFlag(c)
	at := func() *journal.Chain { return journal.At(state()) }
	c.AddCommand(verifyCommand(at), showCommand(at), exportCommand(at))
	return c
}

func verifyCommand(at func() *journal.Chain) *cobra.Command {
	return &cobra.Command{
		Use: "verify", SuggestFor: []string{"check", "validate"},
		Short: "Check each byte of the journal, and name the first that is wrong",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chain := at()
			defer chain.Close()
			r, err := chain.Verify()
			if err != nil {
				return &dataError{"The journal is damaged", err}
			}
			out := cmd.OutOrStdout()
			if r.Unwritten > 0 {
				fmt.Fprintf(out, "Line %d is missing at the end, or was cut to %d bytes: a process was killed while it wrote. The next line takes its place.\n", r.Unwritten, r.Torn)
			}
			if r.Lines == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is on record: eca has not written a journal here yet")
			}
			_, err = fmt.Fprintf(out, "Valid journal: %d lines in %d segments, %d bodies, %d erased\n", r.Lines, r.Segments, r.Bodies, r.Erased)
			return err
		},
	}
}

func exportCommand(at func() *journal.Chain) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print the journal's lines: canonical JSON, each with the hash of the one before",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chain := at()
			defer chain.Close()
			return step("Failed to export the journal", chain.Export(cmd.OutOrStdout()))
		},
	}
}

func showCommand(at func() *journal.Chain) *cobra.Command {
	return &cobra.Command{
		Use:   "show [CHAT]",
		Short: "Print the chats on record, or the calls of one with what was said",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			chain := at()
			defer chain.Close()
			id, err := resolveChat(chain, strings.Join(args, ""))
			if err != nil {
				return err
			}
			calls, err := chain.Calls(id)
			if err != nil {
				return &dataError{"Failed to read the journal", err}
			}
			if id == "" && len(calls) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is on record")
			}
			if id == "" {
				return listChats(cmd.OutOrStdout(), calls)
			}
			for _, c := range calls {
				if err := printCall(cmd.OutOrStdout(), chain, c); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// resolveChat returns the id of the chat on record that name identifies by its id or a prefix of it. An
// exact match wins. An empty name stands for all chats.
func resolveChat(chain *journal.Chain, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	calls, err := chain.Calls("")
	if err != nil {
		return "", &dataError{"Failed to read the journal", err}
	}
	ids := map[string]bool{}
	for _, c := range calls {
		if id := c.Request.Caller.RunID; id != nil {
			ids[*id] = true
		}
	}
	matches := chat.MatchID(name, slices.Sorted(maps.Keys(ids)))
	switch len(matches) {
	case 0:
		return "", &dataError{"Failed to find the chat " + name, fmt.Errorf("it is not on record%s; esrp journal show lists the chats that are", chat.ShortID(name))}
	case 1:
		return matches[0], nil
	}
	return "", &dataError{"Failed to find the chat " + name, fmt.Errorf("this is the beginning of several ids: %s", strings.Join(matches, ", "))}
}

// listChats prints one line per chat, in the order of their first calls.
func listChats(w io.Writer, calls []journal.Call) error {
	type counted struct{ models, tools int }
	counts, order, first := map[string]*counted{}, []string{}, map[string]journal.Call{}
	for _, c := range calls {
		id := "-" // inline requests have no chat
		if run := c.Request.Caller.RunID; run != nil {
			id = *run
		}
		if counts[id] == nil {
			counts[id], first[id] = &counted{}, c
			order = append(order, id)
		}
		if c.Request.Target.Service == journal.ServiceTool {
			counts[id].tools++
		} else {
			counts[id].models++
		}
	}
	for _, id := range order {
		if _, err := fmt.Fprintf(w, "%s  %s  %d model calls, %d tool calls\n", first[id].Request.Timestamp, id, counts[id].models, counts[id].tools); err != nil {
			return err
		}
	}
	return nil
}

// printCall prints a call: its target, the last input, which is the new one, and the answer.
func printCall(w io.Writer, chain *journal.Chain, c journal.Call) error {
	r, variant := c.Request, "-"
	if r.Target.Variant != nil {
		variant = *r.Target.Variant
	}
	fmt.Fprintf(w, "%d  %s  %s %s (%s)\n", c.Seq, r.Timestamp, r.Target.Service, r.Target.Operation, variant)
	if len(r.Inputs) > 0 {
		printBody(w, chain, r.Inputs[len(r.Inputs)-1])
	}
	if c.Response == nil {
		_, err := fmt.Fprintln(w, "    no answer is on record")
		return err
	}
	fmt.Fprintf(w, "    %s", c.Response.Status)
	if c.Response.Error != nil {
		fmt.Fprintf(w, ": %s: %s", c.Response.Error.Code, c.Response.Error.Message)
	}
	fmt.Fprintln(w)
	for _, o := range c.Response.Outputs {
		printBody(w, chain, o)
	}
	return nil
}

func printBody(w io.Writer, chain *journal.Chain, b esrp.Body) {
	const shown = 2000
	data, err := chain.Body(b)
	text := string(data)
	switch {
	case err != nil:
		text = "(" + err.Error() + ")"
	case b.ContentType == "application/octet-stream" || strings.HasPrefix(b.ContentType, "image/"):
		text = fmt.Sprintf("(%d bytes, %s)", len(data), b.Data)
	case len(text) > shown:
		text = strings.ToValidUTF8(text[:shown], "") + fmt.Sprintf("... (%d bytes, %s)", len(data), b.Data)
	}
	fmt.Fprintf(w, "    %s: %s\n", b.Name, strings.ReplaceAll(text, "\n", "\n        "))
}

func replayCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "replay CHAT_ID",
		Short: "Run a recorded chat again against its recorded answers, and report the first difference",
		Args:  cobra.ExactArgs(1),
	}
	state := stateFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		chain := journal.At(state())
		defer chain.Close()
		id, err := resolveChat(chain, args[0])
		if err != nil {
			return err
		}
		r, err := daemon.Replay(cmd.Context(), chain, id)
		var differs *daemon.Difference
		switch {
		case errors.As(err, &differs):
			return &dataError{"The replay differs from the record", err}
		case err != nil:
			return &dataError{"Failed to replay the chat " + id, err}
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "Equal: %d turns, %d model calls, %d tool calls\n", r.Turns, r.Requests, r.Tools)
		if r.NotReplayed != "" {
			fmt.Fprintf(cmd.OutOrStdout(), "Cannot replay the rest: %s\n", r.NotReplayed)
		}
		return err
	}
	return c
}
