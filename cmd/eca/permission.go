package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/tools/permission"
)

const explainHelp = `Explains whether a shell command would be allowed in this directory, denied, or need approval,
which rule decides and why, and which commands it contains. The command is not run. Several
arguments are joined by spaces; put eca's own flags before them.

--text prints only the text that runs if you do not approve the command by hand, because a rule or
auto-approve allows it. eca creates this text from the syntax tree that it checked, with fixed words
in quotes. --text prints it for every verdict, also for ask and deny.

--json prints one document: {verdict, rule, reason, level, network, commands:
[{command, effect, reason}], writes, unparsed, text}. If the command would run in the sandbox,
level is read-only or workspace, and network all or none. An effect is reads, changes or
unknown. writes lists the files of redirections. unparsed is the reason why the command could not
be parsed completely.

--unasked judges as if toolCall.unasked had this value: with off, every command without a rule
that allows it needs approval; with reads, commands that only read run without asking; with
workspace, commands that stay in the sandbox of the workspace run without asking too.

--files also lists the files and folders that the command reads and writes, with links resolved,
and the commands whose files are unknown; with --json as files: {reads, writes, unknown}.`

// permissionCommand is `eca permission`.
func permissionCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "permission",
		Short: "Explain decisions about tool calls; list and forget remembered ones",
	}
	cmd.AddCommand(explainCommand(sf, stdout, stderr), rememberedCommand(sf, stdout, stderr), forgetCommand(sf, stdout, stderr))
	return cmd
}

func explainCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var question daemon.CommandQuestion
	var asJSON, text, files bool
	explain := &cobra.Command{
		Use:   "explain [--agent A] [--unasked MODE] [--files] [--json] [--text] COMMAND...",
		Short: "Explain whether a shell command would be allowed",
		Long:  explainHelp,
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(strings.Join(args, "")) == "" {
				return usage.Errorf("the command is empty")
			}
			if values := []string{config.UnaskedOff, config.UnaskedReads, config.UnaskedWorkspace}; cmd.Flags().Changed("unasked") && !slices.Contains(values, question.Unasked) {
				return usage.Errorf("--unasked must be off (each command asks), reads (commands that only read run without asking) or workspace (commands that stay in the sandbox of the workspace run too), not %q%s",
					question.Unasked, suggest.DidYouMean(question.Unasked, values))
			}
			question.Command = strings.Join(args, " ")
			return withConfig(*sf, stderr, requireReadableConfig(func(d *daemon.Daemon) error {
				e, err := d.ExplainCommand(cmd.Context(), question)
				if err != nil {
					return err
				}
				if text && !asJSON {
					if e.Text == "" {
						return errors.New(e.NoText)
					}
					_, err := fmt.Fprintln(stdout, e.Text)
					return err
				}
				return printExplanation(e, asJSON, files, stdout)
			}))
		},
	}
	explain.Flags().SetInterspersed(false) // flags after the command's name belong to the command
	explain.Flags().StringVar(&question.Unasked, "unasked", "", "judge as with this toolCall.unasked: off, reads (commands that only read run without asking) or workspace (commands that stay in the sandbox run too)")
	explain.Flags().BoolVar(&files, "files", false, "also print the files that the command reads and writes")
	explain.Flags().StringVar(&question.Agent, "agent", "", "judge as for this agent (default: defaultAgent)")
	explain.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	explain.Flags().BoolVar(&text, "text", false, "print only the text that runs if you do not approve the command by hand")
	explain.MarkFlagsMutuallyExclusive("text", "json")
	explain.MarkFlagsMutuallyExclusive("text", "files")
	return explain
}

func rememberedCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List what is remembered for workspaces and everywhere",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return withConfig(*sf, stderr, func(d *daemon.Daemon) error {
				remembered, err := d.Remembered()
				if err != nil {
					return err
				}
				for _, r := range remembered {
					where := r.Workspace
					if where == "" {
						where = "everywhere"
					}
					if r.Void {
						where += "\tno longer allows anything: it may run any code"
					}
					if _, err := fmt.Fprintf(stdout, "%s\t%s\n", r.Key, where); err != nil {
						return err
					}
				}
				if len(remembered) == 0 {
					_, err = fmt.Fprintln(stdout, "Nothing is remembered.")
				}
				return err
			})
		},
	}
}

func forgetCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "forget KEY...",
		Short: "Forget what is remembered under KEY (see list), so that eca asks again",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withConfig(*sf, stderr, func(d *daemon.Daemon) error {
				key, existed, err := forget(d, strings.Join(args, " "))
				switch {
				case err != nil:
					return err
				case !existed:
					return fmt.Errorf("%q is not remembered; `eca permission list` shows what is", key)
				}
				_, err = fmt.Fprintf(stdout, "Forgotten: %s\n", printable(key))
				return err
			})
		},
	}
}

// forget removes a remembered approval. Questions show the keys of eca's own tools without the name
// of the tool, so the name may be omitted here.
func forget(d *daemon.Daemon, given string) (key string, existed bool, err error) {
	remembered, err := d.Remembered()
	if err != nil {
		return given, false, err
	}
	for _, tool := range []string{"", "eca__shell_command ", "eca__git ", "eca__"} {
		key = tool + given
		if slices.ContainsFunc(remembered, func(r permission.Remembered) bool { return r.Key == key }) {
			existed, err = d.Forget(key)
			return key, existed, err
		}
	}
	return given, false, nil
}

func printExplanation(e daemon.Explanation, asJSON, files bool, stdout io.Writer) error {
	type part struct {
		Command string `json:"command"`
		Effect  string `json:"effect"`
		Reason  string `json:"reason"`
	}
	type fileUse struct {
		Reads   []string `json:"reads"`
		Writes  []string `json:"writes"`
		Unknown []string `json:"unknown"`
	}
	var filesUsed *fileUse
	if files {
		filesUsed = &fileUse{e.Files.Reads, e.Files.Writes, e.Files.Unknown}
	}
	parts := []part{}
	for _, c := range e.Commands {
		parts = append(parts, part{c.Source, effect(c.Effect), c.Why})
	}
	level, network := "", ""
	if e.Sandbox != nil {
		level, network = e.Sandbox.Level, e.Sandbox.Network
	}
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(struct {
			Verdict  string   `json:"verdict"`
			Rule     string   `json:"rule"`
			Reason   string   `json:"reason"`
			Level    string   `json:"level,omitempty"`
			Network  string   `json:"network,omitempty"`
			Commands []part   `json:"commands"`
			Writes   []string `json:"writes"`
			Unparsed string   `json:"unparsed,omitempty"`
			Text     string   `json:"text,omitempty"`
			Files    *fileUse `json:"files,omitempty"`
		}{string(e.Verdict.Decision), e.Verdict.Rule, e.Verdict.Reason, level, network, parts, append([]string{}, e.Writes...), e.Unparsed, e.Text, filesUsed})
	}
	always := ""
	if e.Verdict.AlwaysAsk {
		always = ", also with auto-approve"
	}
	_, err := fmt.Fprintf(stdout, "verdict: %s%s\nrule:    %s\nreason:  %s\n", e.Verdict.Decision, always, e.Verdict.Rule, e.Verdict.Reason)
	if level != "" {
		_, writeErr := fmt.Fprintf(stdout, "sandbox: %s, network: %s\n", level, network)
		err = errors.Join(err, writeErr)
	}
	for _, p := range parts {
		line := p.Effect + ": " + p.Command
		if p.Reason != "" {
			line += "  (" + p.Reason + ")"
		}
		_, writeErr := fmt.Fprintln(stdout, "  "+line)
		err = errors.Join(err, writeErr)
	}
	for _, path := range e.Writes {
		_, writeErr := fmt.Fprintf(stdout, "  writes: > %s\n", path)
		err = errors.Join(err, writeErr)
	}
	if e.Unparsed != "" {
		_, writeErr := fmt.Fprintf(stdout, "  not parsed: %s, so commands may run that are not listed\n", e.Unparsed)
		err = errors.Join(err, writeErr)
	}
	if files {
		_, writeErr := fmt.Fprintln(stdout, "files:")
		err = errors.Join(err, writeErr)
		for _, list := range []struct {
			what  string
			names []string
		}{{"read", e.Files.Reads}, {"written", e.Files.Writes}, {"not known", e.Files.Unknown}} {
			for _, name := range list.names {
				_, writeErr := fmt.Fprintf(stdout, "  %s: %s\n", list.what, name)
				err = errors.Join(err, writeErr)
			}
		}
	}
	return err
}

func effect(e cmdline.Effect) string {
	switch e {
	case cmdline.Reads:
		return "reads"
	case cmdline.Changes:
		return "changes"
	}
	return "unknown"
}
