package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

const trustHelp = `Trusts the configuration in a folder's own .eca and .agents: its hooks, MCP servers, providers,
strings with ${cmd:...}, rules that allow tools, and others (docs/trust.md). They have no effect
before you trust them.

  eca trust                show what would run in this directory, and ask
  eca trust DIR --yes      trust a folder without a question
  eca trust --list         print what is trusted, and what of this directory is not
  eca trust DIR --revoke   take trust back from a folder and the folders below it

Trust holds for the current contents. When the configuration or a script that it names changes,
the configuration has no effect until you trust it again; eca trust then shows the changes. Trusted
hooks run as your own do: with the network and with eca's whole environment. A running eca applies
a change of trust immediately.`

func trustCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var revoke, list, yes bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Trust a folder's own configuration, or list and revoke that",
		Long:  trustHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			dir, err := absolute(dir)
			if err != nil {
				return err
			}
			if info, err := os.Stat(dir); err != nil && !revoke {
				return err
			} else if err == nil && !info.IsDir() {
				return fmt.Errorf("%s is not a directory", dir)
			}
			return withFolder(*sf, dir, stderr, func(d *daemon.Daemon) error {
				switch {
				case revoke:
					return revokeTrust(d, dir, stdout)
				case list:
					return listTrust(d, stdout)
				}
				return requireReadableConfig(func(d *daemon.Daemon) error { return trustFolder(cmd.Context(), d, dir, yes, stdout) })(d)
			})
		},
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "take trust back")
	cmd.Flags().BoolVar(&list, "list", false, "print what is trusted")
	cmd.Flags().BoolVar(&yes, "yes", false, "trust without asking")
	cmd.MarkFlagsMutuallyExclusive("revoke", "list", "yes")
	return cmd
}

// maxTrustRounds bounds the rounds of trusting. Trusting a file can reveal others: a file in
// extraConfigs is read once the file that names it is trusted.
const maxTrustRounds = 4

// trustFolder shows the untrusted configuration of a folder, and trusts it if the user agrees or has
// passed --yes.
func trustFolder(ctx context.Context, d *daemon.Daemon, dir string, yes bool, stdout io.Writer) error {
	trusted := false
	for range maxTrustRounds {
		units := d.Untrusted()
		if len(units) == 0 {
			break
		}
		if _, err := fmt.Fprintf(stdout, "Trusting %s enables:\n", dir); err != nil {
			return err
		}
		if err := showUnits(d, units, dir, stdout); err != nil {
			return err
		}
		if !yes {
			line, asked := askTerminal(ctx, "Trust its current contents? [y/N] ")
			switch {
			case !asked:
				return errors.New("nothing was trusted: there is no terminal for the question; --yes trusts without it")
			case !isYes(line):
				return errors.New("nothing was trusted")
			}
		}
		if err := d.Trust(units); err != nil {
			return err
		}
		trusted = true
	}
	units := d.Units()
	if len(units) == 0 {
		_, err := fmt.Fprintf(stdout, "Nothing in %s needs trust.\n", dir)
		return err
	}
	word := "Already trusted"
	if trusted {
		word = "Trusted"
	}
	if _, err := fmt.Fprintf(stdout, "%s in %s:\n", word, dir); err != nil {
		return err
	}
	return printUnits(units, dir, stdout)
}

// showUnits prints what units would do, or what has changed since they were trusted.
func showUnits(d *daemon.Daemon, units []config.Unit, dir string, stdout io.Writer) error {
	for _, u := range units {
		if err := printUnits([]config.Unit{u}, dir, stdout); err != nil {
			return err
		}
		if changed := d.ChangedSinceTrust(u); changed != "" {
			if _, err := fmt.Fprintf(stdout, "    changed since it was trusted: %s\n", printable(changed)); err != nil {
				return err
			}
		}
		for line := range strings.Lines(visible.Text(d.TrustText(u))) {
			if _, err := fmt.Fprintf(stdout, "    %s\n", strings.TrimRight(line, "\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// printUnits prints a line for each item that needs trust.
func printUnits(units []config.Unit, dir string, stdout io.Writer) error {
	for _, u := range units {
		for _, n := range u.Needs {
			if _, err := fmt.Fprintf(stdout, "  %s  %s\n", printable(u.Place(n, dir)), printable(n.What)); err != nil {
				return err
			}
		}
	}
	return nil
}

func revokeTrust(d *daemon.Daemon, dir string, stdout io.Writer) error {
	revoked, err := d.Revoke(dir)
	if err != nil {
		return err
	}
	if len(revoked) == 0 {
		_, err = fmt.Fprintf(stdout, "%s was not trusted.\n", dir)
		return err
	}
	_, err = fmt.Fprintf(stdout, "Not trusted any more: %s\n", strings.Join(revoked, ", "))
	return err
}

func listTrust(d *daemon.Daemon, stdout io.Writer) error {
	folders, err := d.TrustedFolders()
	if err != nil {
		return err
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		f := folders[dir]
		_, writeErr := fmt.Fprintf(stdout, "%s  since %s: %s\n", dir, f.Since.Local().Format("2006-01-02 15:04"), strings.Join(slices.Sorted(maps.Keys(f.Files)), ", "))
		err = cmp.Or(err, writeErr)
	}
	if len(folders) == 0 {
		_, err = fmt.Fprintln(stdout, "No folder is trusted.")
	}
	if units := d.Untrusted(); len(units) > 0 && err == nil {
		if _, err = fmt.Fprintln(stdout, "Not trusted in this directory, so without effect:"); err == nil {
			err = showUnits(d, units, units[0].Root, stdout)
		}
	}
	return err
}
