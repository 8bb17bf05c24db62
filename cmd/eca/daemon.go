package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// commandTime limits each ${cmd:...} of the configuration in commands that a user waits for.
const commandTime = 10 * time.Second

// daemonForCwd returns a daemon that is configured for the current directory. The caller closes it.
func daemonForCwd(sf serverFlags, stderr io.Writer) (*daemon.Daemon, error) {
	log, err := logger(sf.logLevel, stderr)
	if err != nil {
		return nil, err
	}
	cwd, err := workingDir()
	if err != nil {
		return nil, err
	}
	o, err := daemonOptions(sf, log.Logger)
	if err != nil {
		return nil, err
	}
	o.CommandTime, o.ReadChats = commandTime, true
	d := newDaemonWith(o, log)
	d.Configure(nil, []string{cwd})
	return d, nil
}

// workingDir is like os.Getwd, but its error also suggests what to do. It fails too if the directory
// does not exist any more.
func workingDir() (string, error) {
	dir, err := os.Getwd()
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err != nil {
		return "", fmt.Errorf("cannot use the working directory; it may have been deleted or moved, so change to another one: %w", err)
	}
	return dir, nil
}

// absolute is like filepath.Abs, but with the errors of workingDir.
func absolute(dir string) (string, error) {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir), nil
	}
	cwd, err := workingDir()
	return filepath.Join(cwd, dir), err
}

// withHumanLogLevel sets the log level humanLogLevel, unless the user sets a level with --log-level.
func withHumanLogLevel(sf serverFlags, cmd *cobra.Command) serverFlags {
	if !cmd.Flags().Changed("log-level") {
		sf.logLevel = humanLogLevel
	}
	return sf
}

// checkConfigFile fails if the file of --config-file cannot be read. path is empty without the flag.
func checkConfigFile(path string) error {
	if path == "" {
		return nil
	}
	file, err := safeio.Open("", path)
	switch {
	case err == nil:
		return file.Close()
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("cannot read %s: the file does not exist; correct --config-file, or leave it out", path)
	}
	return fmt.Errorf("--config-file: cannot read %s: %w", path, safeio.Cause(err))
}

// printBroken lists the configuration files that could not be read.
func printBroken(d *daemon.Daemon, stderr io.Writer) {
	for _, text := range d.Config().Broken() {
		fmt.Fprintf(stderr, "eca: %s\n", printable(d.Clean(text)))
	}
}

// daemonShowingMistakes is like daemonForCwd, but shows mistakes in the configuration as messages, not as a
// log.
func daemonShowingMistakes(sf serverFlags, cmd *cobra.Command, stderr io.Writer) (*daemon.Daemon, error) {
	d, err := daemonForCwd(withHumanLogLevel(sf, cmd), stderr)
	if err == nil {
		printMistakes(d, cmd, stderr)
	}
	return d, err
}

// printMistakes lists the mistakes in the configuration, unless the log shows them.
func printMistakes(d *daemon.Daemon, cmd *cobra.Command, stderr io.Writer) {
	if cmd.Flags().Changed("log-level") {
		return
	}
	for _, f := range d.Config().Mistakes() {
		fmt.Fprintf(stderr, "eca: %s: %s\n", f.Place(), printable(d.Clean(f.Message)))
	}
}

// withConfig calls fn with a daemon that is configured for this directory.
func withConfig(sf serverFlags, stderr io.Writer, fn func(*daemon.Daemon) error) error {
	cwd, err := workingDir()
	if err != nil {
		return err
	}
	return withFolder(sf, cwd, stderr, fn)
}

// brokenError lists the configuration files that could not be read.
type brokenError string

// Error implements error.
func (e brokenError) Error() string { return string(e) }

// requireReadableConfig calls fn only if the whole configuration could be read: an unreadable file could
// contain any setting.
func requireReadableConfig(fn func(*daemon.Daemon) error) func(*daemon.Daemon) error {
	return func(d *daemon.Daemon) error {
		if broken := d.Config().Broken(); len(broken) > 0 {
			return brokenError(strings.Join(broken, "\n"))
		}
		return fn(d)
	}
}

// withFolder calls fn with a daemon that is configured for a folder and starts no programs. It then
// lists the configuration files that could not be read, unless the error of fn does.
func withFolder(sf serverFlags, dir string, stderr io.Writer, fn func(*daemon.Daemon) error) error {
	sf.logLevel = "error" // these commands report other problems in their output
	sf.record = ""        // and they ask no model
	log, err := logger(sf.logLevel, stderr)
	if err != nil {
		return err
	}
	o, err := daemonOptions(sf, log.Logger)
	if err != nil {
		return err
	}
	o.CommandTime, o.ReadChats = -1, true
	d := daemon.New(o)
	defer d.Close()
	d.Configure(nil, []string{dir})
	d.Extensions()
	err = fn(d)
	switch err.(type) { //nolint:errorlint // never wrapped
	case brokenError, exitError:
	default:
		printBroken(d, stderr)
	}
	return err
}

// ignoredFiles describes files that look like the configuration of a workspace and are not read.
func ignoredFiles(d *daemon.Daemon, root string) (out []string) {
	for _, f := range d.Misnamed() {
		out = append(out, f.Source+": "+f.Message)
	}
	for last, dir := root, filepath.Dir(root); dir != last; last, dir = dir, filepath.Dir(dir) {
		file := filepath.Join(dir, ".eca", "config.json")
		if _, err := os.Stat(file); err == nil {
			out = append(out, fmt.Sprintf("%s is not read, because %s is not a folder of this workspace: run eca there, or move its settings to your own configuration", file, dir))
		}
	}
	return out
}
