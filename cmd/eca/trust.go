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

const trustHelp = `Trusts what a folder's own files (.eca, .agents) run, redirect or loosen: hooks, MCP
servers, providers, commands in texts, rules that allow. Without it they have no effect.
DIR is this directory unless you name one. The command shows what would run, with scripts
of the folder and what changed since you trusted it last, and asks; --yes trusts without
asking. It is trusted as it is: when it changes, or a script that it names, it has no
effect again until you trust it again. Hooks that you trust run as your own do: with the network
and with all of eca's environment.

--list prints what is trusted, and shows what of this directory is not. --revoke takes trust back
from a folder and from those below it. eca that is running notices at once.`

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
				return unbroken(func(d *daemon.Daemon) error { return trustFolder(cmd.Context(), d, dir, yes, stdout) })(d)
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

// trustFolder shows what would run and asks, unless the user passed --yes.
func trustFolder(ctx context.Context, d *daemon.Daemon, dir string, yes bool, stdout io.Writer) error {
	trusted := false
	for range maxTrustRounds {
		units := d.Untrusted()
		if len(units) == 0 {
			break
		}
		if _, err := fmt.Fprintf(stdout, "%s would, when it is trusted:\n", dir); err != nil {
			return err
		}
		if err := showUnits(d, units, dir, stdout); err != nil {
			return err
		}
		if !yes {
			line, asked := askTerminal(ctx, "Trust it as it is now? [y/N] ")
			switch {
			case !asked:
				return errors.New("nothing was trusted: there is no terminal to ask on; --yes trusts without asking")
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

// printUnits prints a line for each thing that needs trust.
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
		if _, err = fmt.Fprintln(stdout, "Without effect here, because not trusted:"); err == nil {
			err = showUnits(d, units, units[0].Root, stdout)
		}
	}
	return err
}
