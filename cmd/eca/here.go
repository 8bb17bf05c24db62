package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon"
)

// hereDaemon is eca, configured for the current directory. Who asked for it closes it.
func hereDaemon(sf serverFlags, stderr io.Writer) (*daemon.Daemon, error) {
	log, err := logger(sf.logLevel, stderr)
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	d, err := newDaemon(sf, log)
	if err != nil {
		return nil, err
	}
	d.Configure(nil, []string{cwd})
	return d, nil
}

// forReaders keeps the log of a command off stderr that says itself what is wrong, unless the user
// asks for a level.
func forReaders(sf serverFlags, cmd *cobra.Command) serverFlags {
	if !cmd.Flags().Changed("log-level") {
		sf.logLevel = forPeople
	}
	return sf
}

// quietDaemon is hereDaemon with the problems of the configuration as messages, not as a log.
func quietDaemon(sf serverFlags, cmd *cobra.Command, stderr io.Writer) (*daemon.Daemon, error) {
	d, err := hereDaemon(forReaders(sf, cmd), stderr)
	if err == nil && !cmd.Flags().Changed("log-level") {
		for _, p := range d.Config().Problems {
			fmt.Fprintf(stderr, "eca: %s\n", printable(d.Clean(p.String())))
		}
	}
	return d, err
}

// withConfig calls fn with a daemon that is configured for this directory.
func withConfig(sf serverFlags, stderr io.Writer, fn func(*daemon.Daemon) error) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	return withFolder(sf, cwd, stderr, fn)
}

// withFolder calls fn with a daemon that is configured for a folder, and runs nothing.
func withFolder(sf serverFlags, dir string, stderr io.Writer, fn func(*daemon.Daemon) error) error {
	sf.logLevel = "error" // what is wrong is told in another way
	log, err := logger(sf.logLevel, stderr)
	if err != nil {
		return err
	}
	o, err := daemonOptions(sf, log.Logger)
	if err != nil {
		return err
	}
	o.NoCommands = true
	d := daemon.New(o)
	defer d.Close()
	d.Configure(nil, []string{dir})
	d.Extensions()
	return fn(d)
}
