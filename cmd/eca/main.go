// Command eca is the coding-assistant daemon and its command line.
//
// It owns flags, exit codes, signals and what the commands print; it decides nothing that a
// face or the daemon could. It guarantees that what a command says for scripts goes to
// stdout and all else to stderr, that no secret is in either, and that text of others is
// printed without control characters.
//
// Exit codes: 0 success; 1 failure; 2 wrong usage. `eca exec` has more, see exec.go.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/browser"
	"github.com/seed-dec29ce4/eca/internal/keychain"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/server"
)

// version is set by the linker for releases.
var version = "0.1.0"

func main() {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A client that goes away is an error to handle, not a reason to die uncleanly.
	// (Ignoring the signal would be inherited by commands, which rely on it in pipes.)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exitError carries an exit code; its error, if any, was shown already.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// run is the program, without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := command(stdin, stdout, stderr)
	root.SetArgs(dropUnknownFlags(root, args, stderr))
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	if code, ok := err.(exitError); ok { //nolint:errorlint // never wrapped
		return code.code
	}
	switch {
	case !usage.Report(stderr, err):
		fmt.Fprintln(stderr, "eca:", usage.Message(err))
	case called.Name() != "read-chat": // whose errors all are 1, as hooks know it
		return usage.ExitCode
	}
	return 1
}

// serverFlags are the flags of `eca server`.
type serverFlags struct {
	stdio      bool
	logLevel   string
	verbose    bool
	configFile string
	record     string
	stateDir   string // where there is no home; not a flag
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var f serverFlags
	root := &cobra.Command{
		Use:           "eca",
		Short:         "A coding-assistant daemon for editors",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.stdio {
				return serve(cmd.Context(), f, stdin, stdout, stderr)
			}
			return usage.Errorf("a command is missing; eca --help lists them")
		},
	}
	root.SetVersionTemplate("eca {{.Version}}\n")
	root.SetOut(stdout)
	root.SetErr(stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&f.logLevel, "log-level", "info", "how much to log to stderr: error, warn, info or debug")
	flags.BoolVar(&f.verbose, "verbose", false, "log every protocol message to stderr")
	flags.StringVar(&f.configFile, "config-file", "", "read this file instead of the usual configuration files")
	flags.StringVar(&f.record, "record", "", "record the models' answers as cassettes into this directory")
	root.Flags().BoolVar(&f.stdio, "stdio", false, "the same as the command server")
	root.AddCommand(&cobra.Command{
		Use:         "server",
		Short:       "Serve an editor over stdin and stdout",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{usage.Lenient: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), f, stdin, stdout, stderr)
		},
	},
		execCommand(&f, stdin, stdout, stderr),
		readChatCommand(stdout, stderr),
		modelsCommand(&f, stdout, stderr),
		loginCommand(&f, stdin, stdout, stderr),
		logoutCommand(&f, stdout, stderr),
		configCommand(&f, stdout, stderr),
		permissionCommand(&f, stdout, stderr),
		pluginCommand(&f, stdout, stderr),
		mcpCommand(&f, stdout, stderr),
		doctorCommand(&f, stdout, stderr),
		statsCommand(stdout),
		cacheCommand(&f, stdout, stderr),
		repomapCommand(stdout),
		trustCommand(&f, stdout, stderr),
		ecpCommand(&f, stdin, stdout, stderr),
		e2aCommand(&f, stdin, stdout, stderr),
		serveCommand(&f, stderr),
		acpCommand(&f, stdin, stdout, stderr),
	)
	usage.Strict(root)
	return root
}

// dropUnknownFlags removes flags nobody knows, and names them: users keep flags in
// their editors' settings across versions. The commands for scripts are strict, since a
// script should hear of a typo.
func dropUnknownFlags(root *cobra.Command, args []string, stderr io.Writer) []string {
	strict := []string{"exec", "permission", "read-chat", "models", "config", "plugin", "mcp", "doctor", "stats", "cache", "login", "logout", "repomap", "trust", "ecp", "serve"}
	if slices.ContainsFunc(args, func(a string) bool { return slices.Contains(strict, a) }) {
		return args
	}
	var out []string
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch flag := lookupFlag(root, a, name); {
		case !strings.HasPrefix(a, "-") || a == "-" || name == "help" || name == "h" || name == "version":
			out = append(out, a)
		case flag == nil:
			fmt.Fprintf(stderr, "eca: unknown flag %s is ignored\n", a)
		case flag.NoOptDefVal == "" && !hasValue && i+1 < len(args):
			out = append(out, a, args[i+1])
			i++
		default:
			out = append(out, a)
		}
	}
	return out
}

func lookupFlag(root *cobra.Command, arg, name string) *pflag.Flag {
	if !strings.HasPrefix(arg, "--") {
		return nil
	}
	if f := root.PersistentFlags().Lookup(name); f != nil {
		return f
	}
	return root.Flags().Lookup(name)
}

// logs are what goes to stderr besides words for people: without secrets, those of the
// configuration included as soon as it is known.
type logs struct {
	*slog.Logger
	stderr io.Writer
	clean  atomic.Pointer[func(string) string]
}

// forPeople is the level of commands whose stderr people read, unless they ask for another:
// errors, but for those of MCP servers, which these commands tell in their own words.
const forPeople = "people"

// withoutServers is a handler that leaves out failures of MCP servers.
type withoutServers struct{ slog.Handler }

// Handle implements slog.Handler.
func (h withoutServers) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == mcp.FailedMessage {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h withoutServers) WithAttrs(attrs []slog.Attr) slog.Handler {
	return withoutServers{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h withoutServers) WithGroup(name string) slog.Handler {
	return withoutServers{h.Handler.WithGroup(name)}
}

// logger returns logs to stderr.
func logger(level string, stderr io.Writer) (*logs, error) {
	var l slog.Level
	people := level == forPeople
	if people {
		level = "error"
	}
	if err := usage.Choice("log-level", level, "error", "warn", "info", "debug"); err != nil {
		return nil, err
	}
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, err
	}
	out := &logs{}
	looks := redact.New().String
	out.clean.Store(&looks)
	out.stderr = redact.Writer(stderr, out.without)
	var handler slog.Handler = slog.NewTextHandler(out.stderr, &slog.HandlerOptions{Level: l})
	if people {
		handler = withoutServers{handler}
	}
	out.Logger = slog.New(handler)
	return out, nil
}

func (l *logs) without(text string) string { return (*l.clean.Load())(text) }

// trace logs protocol messages.
func (l *logs) trace() func(bool, []byte) {
	log := slog.New(slog.NewTextHandler(l.stderr, nil))
	return func(incoming bool, body []byte) {
		dir := "sent"
		if incoming {
			dir = "received"
		}
		log.Info("rpc "+dir, "msg", l.without(string(body))) // once more: quoted, it looks different
	}
}

// newDaemon assembles the daemon for the flags.
func newDaemon(f serverFlags, log *logs) (*daemon.Daemon, error) {
	o, err := daemonOptions(f, log.Logger)
	if err != nil {
		return nil, err
	}
	return watchedDaemon(o, log), nil
}

// watchedDaemon assembles a daemon whose secrets are kept out of the log.
func watchedDaemon(o daemon.Options, log *logs) *daemon.Daemon {
	d := daemon.New(o)
	clean := d.Clean
	log.clean.Store(&clean)
	return d
}

func daemonOptions(f serverFlags, log *slog.Logger) (daemon.Options, error) {
	o := daemon.Options{Log: log, Version: version, Command: os.Args, CatalogURL: catalog.URL, Keychain: keychain.System(os.Getenv)}
	o.StateDir = f.stateDir
	if o.StateDir == "" {
		if err := checkState(os.Getenv); err != nil {
			return o, err
		}
	}
	var err error
	for path, dst := range map[string]*string{f.configFile: &o.ConfigFile, f.record: &o.RecordDir} {
		if path == "" {
			continue
		}
		if *dst, err = filepath.Abs(path); err != nil {
			return o, err
		}
	}
	if o.Executable, err = os.Executable(); err != nil {
		log.Warn("own executable is unknown; commands run without a supervisor", "err", err)
	}
	o.Supervisor = o.Executable
	o.OpenURL = func(ctx context.Context, url string) error { return browser.Open(ctx, url, os.Getenv) }
	return o, nil
}

// serve runs the daemon for one editor.
func serve(ctx context.Context, f serverFlags, stdin io.Reader, stdout, stderr io.Writer) error {
	log, err := logger(f.logLevel, stderr)
	if err != nil {
		return err
	}
	slog.SetDefault(log.Logger)
	d, err := newDaemon(f, log)
	if err != nil {
		return err
	}
	defer d.Close()
	opts := server.Options{Host: d, Version: version, Log: log.Logger}
	if f.verbose {
		opts.Trace = log.trace()
	}
	return server.Serve(ctx, stdin, stdout, opts)
}
