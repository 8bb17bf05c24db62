// Command eca is the coding-assistant daemon and its command line.
//
// It owns flags, exit codes, signals and the output of the commands. All other decisions belong to
// the daemon and to the packages of the protocols. Output for scripts goes to stdout, and everything
// else to stderr. Neither contains secrets, and no text in them controls the terminal: see
// usage.Visible.
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
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-dec29ce4/eca/chat/store"
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
	runtime.MemProfileRate = 0 // profiles of memory cost memory; the debug page turns them on
	exitSignals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		exitSignals = append(exitSignals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), exitSignals...)
	defer stop()
	// A client that disconnects is an error to handle, not a reason to crash. SIGPIPE is not ignored,
	// because child processes would inherit that, and pipelines rely on the signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], os.Stdin, usage.Visible(usage.NewOutput(os.Stdout)), usage.Visible(os.Stderr)))
}

// exitError carries an exit code. Any error has already been shown.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// run executes a command line and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := command(stdin, stdout, stderr)
	root.SetArgs(dropUnknownFlags(root, args, stderr))
	called, err := usage.Execute(ctx, root)
	if writeErr := usage.WriteError(stdout); writeErr != nil {
		fmt.Fprintln(stderr, "eca: cannot write the output:", usage.Message(writeErr))
		return 1
	}
	if err == nil {
		return 0
	}
	if usage.IsUnread(err) {
		return usage.Unread
	}
	if exit, shown := err.(exitError); shown { //nolint:errorlint // never wrapped
		if ctx.Err() != nil && called.Name() != "read-chat" {
			return usage.Interrupted
		}
		return exit.code
	}
	code := report(ctx, called, err, stderr)
	if called.Name() == "exec" && wantsJSON(args) {
		writeAbortedResult(stdout, code, err)
	}
	return code
}

// report shows why a command failed, and returns the exit code for it.
func report(ctx context.Context, called *cobra.Command, err error, stderr io.Writer) int {
	switch {
	case ctx.Err() != nil && called.Name() != "read-chat": // the error is a consequence of the interrupt
		fmt.Fprintf(stderr, "%s: interrupted\n", called.CommandPath())
		return usage.Interrupted
	case !usage.Report(stderr, err):
		fmt.Fprintf(stderr, "%s: %s\n", called.CommandPath(), usage.Message(err))
	case called.Name() != "read-chat": // all its errors are exit code 1, as hooks expect
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
	debug      string // address of the debug page; empty if it is off
	stateDir   string // set if there is no home directory; not a flag
}

func command(stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var f serverFlags
	root := &cobra.Command{
		Use:           "eca",
		Short:         "A coding-assistant daemon for editors",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if _, lenient := cmd.Annotations[usage.Lenient]; lenient || !cmd.HasParent() { // an editor shows it
				return nil
			}
			if err := checkLogLevel(f.logLevel); err != nil {
				return err
			}
			return checkConfigFile(f.configFile)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.stdio {
				return serve(cmd.Context(), f, stdin, stdout, stderr)
			}
			return usage.Errorf("a command is missing; eca --help lists them")
		},
	}
	root.SetOut(stdout)
	root.SetErr(stderr)
	flags := root.PersistentFlags()
	flags.StringVar(&f.logLevel, "log-level", "info", "how much to log to stderr: error, warn, info or debug; without it, most commands log only errors")
	flags.Lookup("log-level").DefValue = "" // hide the default from the help, because it only applies to servers
	flags.BoolVar(&f.verbose, "verbose", false, "log every protocol message to stderr")
	flags.StringVar(&f.configFile, "config-file", "", "read this file instead of the usual configuration files")
	flags.StringVar(&f.record, "record", "", "record the models' answers as cassettes into this directory")
	root.Flags().BoolVar(&f.stdio, "stdio", false, "the same as the command server")
	editors := &cobra.Command{
		Use:         "server",
		Short:       "Serve an editor over stdin and stdout",
		Args:        cobra.NoArgs,
		Annotations: map[string]string{usage.Lenient: ""},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serve(cmd.Context(), f, stdin, stdout, stderr)
		},
	}
	for _, flags := range []*pflag.FlagSet{root.Flags(), editors.Flags()} {
		flags.StringVar(&f.debug, "debug", "", "serve a debug page at `HOST:PORT` of this machine; port 0 chooses a free port")
	}
	root.AddCommand(
		editors,
		execCommand(&f, stdin, stdout, stderr),
		readChatCommand(stdout, stderr),
		chatsCommand(&f, stdout, stderr),
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
		repomapCommand(stdout, stderr),
		trustCommand(&f, stdout, stderr),
		ecpCommand(&f, stdin, stdout, stderr),
		e2aCommand(&f, stdin, stdout, stderr),
		serveCommand(&f, stderr),
		webCommand(&f, stdout, stderr),
		acpCommand(&f, stdin, stdout, stderr),
		remoteCommand(&f, stdout, stderr),
	)
	addCompletions(root, &f)
	usage.Strict(root)
	return root
}

// dropUnknownFlags removes unknown flags from command lines that editors start, and warns about
// them, because users keep flags in the settings of their editors across versions. Other commands
// are strict, so scripts fail on a typo.
func dropUnknownFlags(root *cobra.Command, args []string, stderr io.Writer) []string {
	if !isEditorCommand(root, args) {
		return args
	}
	out := []string{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		name, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
		switch flag := lookupFlag(root, a, name); {
		case !strings.HasPrefix(a, "-") || a == "-" || name == "help" || name == "h" || name == "version":
			out = append(out, a)
		case flag == nil:
			fmt.Fprintf(stderr, "eca: unknown flag %s is ignored\n", a)
			if !hasValue && len(out) > 0 && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") { // its value, since the commands have no arguments
				i++
			}
		case flag.NoOptDefVal == "" && !hasValue && i+1 < len(args):
			out = append(out, a, args[i+1])
			i++
		default:
			out = append(out, a)
		}
	}
	return out
}

// isEditorCommand reports whether args run a command that editors start.
func isEditorCommand(root *cobra.Command, args []string) bool {
	stdio := false
	for i := 0; i < len(args); i++ {
		a := args[i]
		if !strings.HasPrefix(a, "-") {
			return slices.Contains([]string{"server", "acp", "e2a"}, a)
		}
		name, _, hasValue := strings.Cut(strings.TrimLeft(a, "-"), "=")
		stdio = stdio || name == "stdio"
		if flag := lookupFlag(root, a, name); flag != nil && flag.NoOptDefVal == "" && !hasValue {
			i++
		}
	}
	return stdio
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

// logs is the log on stderr. It hides secrets, and once the configuration is loaded, also the
// secrets in it.
type logs struct {
	*slog.Logger
	stderr   io.Writer
	redactor atomic.Pointer[func(string) string]
}

// humanLogLevel is the default log level of commands whose stderr is for human readers. It shows errors,
// except those of MCP servers, which these commands report themselves.
const humanLogLevel = "people"

// mcpFailureFilter is a log handler that drops records about failed MCP servers.
type mcpFailureFilter struct{ slog.Handler }

// Handle implements slog.Handler.
func (h mcpFailureFilter) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == mcp.FailedMessage {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h mcpFailureFilter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return mcpFailureFilter{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h mcpFailureFilter) WithGroup(name string) slog.Handler {
	return mcpFailureFilter{h.Handler.WithGroup(name)}
}

func checkLogLevel(level string) error {
	return usage.Choice("log-level", level, "error", "warn", "info", "debug")
}

// logger returns logs to stderr.
func logger(level string, stderr io.Writer) (*logs, error) {
	var l slog.Level
	people := level == humanLogLevel
	if people {
		level = "error"
	}
	if err := checkLogLevel(level); err != nil {
		return nil, err
	}
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, err
	}
	out := &logs{}
	redactLookalikes := redact.New().String
	out.redactor.Store(&redactLookalikes)
	out.stderr = redact.Writer(stderr, out.redact)
	var handler slog.Handler = slog.NewTextHandler(out.stderr, &slog.HandlerOptions{Level: l})
	if people {
		handler = mcpFailureFilter{handler}
	}
	out.Logger = slog.New(handler)
	return out, nil
}

func (l *logs) redact(text string) string { return (*l.redactor.Load())(text) }

// trace returns a function that logs protocol messages.
func (l *logs) trace() func(bool, []byte) {
	log := slog.New(slog.NewTextHandler(l.stderr, nil))
	return func(incoming bool, body []byte) {
		dir := "sent"
		if incoming {
			dir = "received"
		}
		log.Info("rpc "+dir, "msg", l.redact(string(body))) // redacted before the log quotes it: a quoted secret looks different
	}
}

// newDaemon creates a daemon with the options of the flags.
func newDaemon(f serverFlags, log *logs) (*daemon.Daemon, error) {
	o, err := daemonOptions(f, log.Logger)
	if err != nil {
		return nil, err
	}
	return newDaemonWith(o, log), nil
}

// newDaemonWith creates a daemon, and redacts the secrets of its configuration in the log.
func newDaemonWith(o daemon.Options, log *logs) *daemon.Daemon {
	d := daemon.New(o)
	clean := d.Clean
	log.redactor.Store(&clean)
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
	if o.RecordDir != "" {
		if err := store.Writable(o.RecordDir); err != nil {
			return o, fmt.Errorf("--record: nothing can be recorded: %w", err)
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
	if isTerminal(stdin) {
		fmt.Fprintln(stderr, "eca server: waiting for an editor, which starts this command itself; Ctrl-C ends it. Without an editor, use eca web or eca exec.")
	}
	d, err := newDaemon(f, log)
	if err != nil {
		return err
	}
	defer d.Close()
	attachRemote(d, f, log.Logger)
	opts := server.Options{Host: d, Version: version, Log: log.Logger, Monitor: &server.Monitor{}}
	if f.debug != "" {
		stop, err := serveDebug(f.debug, &debugPage{time.Now(), d.Engine(), opts.Monitor}, stderr)
		if err != nil {
			return err
		}
		defer stop()
	}
	if f.verbose {
		opts.Trace = log.trace()
	}
	return server.Serve(ctx, stdin, usage.Raw(stdout), opts)
}
