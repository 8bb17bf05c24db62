// Package usage makes all commands report a wrong command line in the same way: a line on stderr
// with the error, "eca exec: unknown flag --modell; did you mean --model?", a usage line, and exit
// code 2.
//
// This applies to every command of a tree: unknown commands and flags, missing values, wrong
// arguments, and the usage errors that a command itself returns. Correct command lines are not
// affected.
package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Exit codes.
const (
	ExitCode    = 2   // a wrong command line
	Interrupted = 130 // the user pressed Ctrl-C
	Unread      = 141 // the reader of the output has closed it, as head does
)

// IsUnread reports whether a program failed because the reader of its output has closed it. This is
// not reported: shells expect such programs to exit silently.
func IsUnread(err error) bool {
	var path *fs.PathError
	return errors.As(err, &path) && path.Path == "/dev/stdout" && errors.Is(err, syscall.EPIPE)
}

// Error is an error in a command line.
type Error struct {
	command, line string // the command and its usage, set by Strict
	err           error
}

func (e *Error) Error() string { return e.err.Error() }

func (e *Error) Unwrap() error { return e.err }

// New makes a usage error from an error that a command found in its arguments.
func New(err error) error { return &Error{err: err} }

// Errorf is New with a formatted text.
func Errorf(format string, args ...any) error { return New(fmt.Errorf(format, args...)) }

// Choice returns a usage error unless a flag's value is one of the choices.
func Choice(flag, value string, choices ...string) error {
	for _, c := range choices {
		if value == c {
			return nil
		}
	}
	last := len(choices) - 1
	return Errorf("--%s must be %s or %s, not %q%s", flag, strings.Join(choices[:last], ", "), choices[last], value, suggest.DidYouMean(value, choices))
}

// Time reads a time limit above 0: a number of seconds (more than a year counts as a year), or a
// time with units (90s, 10m).
func Time(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	const maxSeconds = 365 * 24 * 3600 // a year fits into a time.Duration
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s > 0) || math.IsInf(s, 0) {
		return 0, fmt.Errorf("it must be a number of seconds above 0, or a time such as 90s or 10m, not %q", text)
	}
	return time.Duration(min(s, maxSeconds) * float64(time.Second)), nil
}

// Strict makes a tree of commands follow the convention. Commands that only group others report
// that a command is missing when they are called alone. --version prints the root's name and
// version.
func Strict(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	strict(root)
	addVersion(root)
}

// Execute runs a tree that was prepared by Strict, and returns the command that was called. Help
// for an unknown command is an error.
func Execute(ctx context.Context, root *cobra.Command) (*cobra.Command, error) {
	var unknownErr error
	showHelp := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		rest := cmd.Flags().Args()
		if sub, subArgs, err := cmd.Find(rest); err == nil && sub != cmd { // --help is before the command's name
			sub.InitDefaultHelpFlag()
			cmd, rest = sub, subArgs
		}
		if cmd.HasSubCommands() {
			unknownErr = rejectUnknownCommand(cmd, rest)
		}
		if unknownErr == nil {
			showHelp(cmd, args)
		}
	})
	root.SetHelpCommand(helpCommand(root))
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = unknownErr
	}
	return called, err
}

// helpCommand is cobra's help command, except that it rejects unknown commands.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about any command",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			switch {
			case err != nil:
				return err
			case cmd.HasSubCommands():
				if err := rejectUnknownCommand(cmd, rest); err != nil {
					return err
				}
			case len(rest) > 0:
				return atCommand(cmd, Errorf("it has no commands, so no %s", quoted(rest)))
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		},
	}
}

// addVersion adds --version. Cobra's own version flag uses templates, which prevent the linker from
// removing unused methods and make eca a fifth larger.
func addVersion(root *cobra.Command) {
	version, run := root.Version, root.RunE
	root.Version = ""
	shown := root.Flags().BoolP("version", "v", false, "version for "+root.Name())
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *shown {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), root.Name(), version)
			return err
		}
		return run(cmd, args)
	}
}

// strict is Strict for one command and its subcommands, without what concerns only the root.
func strict(cmd *cobra.Command) {
	args, run := cmd.Args, cmd.RunE
	switch {
	case cmd.HasSubCommands():
		cmd.Args = rejectUnknownCommand
		if run == nil {
			run = func(cmd *cobra.Command, _ []string) error {
				return Errorf("a command is missing; %s --help lists them", cmd.CommandPath())
			}
		}
	default:
		if args == nil {
			args = cobra.ArbitraryArgs
		}
		cmd.Args = func(cmd *cobra.Command, given []string) error {
			for _, check := range []func() error{cmd.ValidateRequiredFlags, cmd.ValidateFlagGroups} {
				if err := check(); err != nil {
					return atCommand(cmd, flagGroupError(err))
				}
			}
			accepts := func(given []string) bool { return args(cmd, given) == nil }
			if err := argumentError(given, args(cmd, given), accepts); err != nil {
				return atCommand(cmd, err)
			}
			return atCommand(cmd, emptyValueError(cmd, given))
		}
	}
	if preRun := cmd.PersistentPreRunE; preRun != nil {
		cmd.PersistentPreRunE = func(cmd *cobra.Command, args []string) error { return atCommand(cmd, preRun(cmd, args)) }
	}
	if run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error { return atCommand(cmd, run(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// exclusiveFlags matches cobra's message about flags that exclude each other.
var exclusiveFlags = pattern.Lazy(`\[([^\]]*)\] were all set$`)

// requiredFlags matches cobra's message about required flags.
var requiredFlags = pattern.Lazy(`^required flag\(s\) "(.*)" not set$`)

// flagGroupError explains missing required flags, and flags that exclude each other.
func flagGroupError(err error) error {
	if m := requiredFlags().FindStringSubmatch(err.Error()); m != nil {
		return Errorf("--%s is required", strings.Join(strings.Split(m[1], `", "`), " and --"))
	}
	m := exclusiveFlags().FindStringSubmatch(err.Error())
	if m == nil {
		return New(err)
	}
	return Errorf("--%s cannot be used together", strings.Join(strings.Fields(m[1]), " and --"))
}

// Lenient is the annotation of a command that accepts empty values, which editors may send.
const Lenient = "lenient"

// emptyValueError rejects empty values: they come from unset variables, and would have the same effect
// as a missing flag or argument.
func emptyValueError(cmd *cobra.Command, args []string) error {
	if _, lenient := cmd.Annotations[Lenient]; lenient {
		return nil
	}
	var out error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = slices.Contains(list.GetSlice(), "")
		}
		if empty && out == nil {
			out = Errorf("--%s is empty; give it a value, or leave it out: %s", f.Name, f.Usage)
		}
	})
	if dash := cmd.ArgsLenAtDash(); dash >= 0 {
		args = args[:dash]
	}
	if out == nil && slices.Contains(args, "") {
		out = Errorf("an argument is empty")
	}
	return out
}

// atCommand records the command in which a usage error was found.
func atCommand(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.command == "" {
		e.command, e.line = cmd.CommandPath(), cmd.UseLine()
		if cmd.HasSubCommands() {
			e.line = e.command + " COMMAND"
		}
	}
	return err
}

// rejectUnknownCommand rejects arguments of a command that groups others, since none of its commands has
// that name.
func rejectUnknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			names = append(names, sub.Name())
		}
	}
	hint := suggest.DidYouMean(args[0], names)
	for _, sub := range cmd.Commands() { // names that other programs use for the command
		if slices.Contains(sub.SuggestFor, args[0]) {
			hint = fmt.Sprintf("; did you mean %s?", sub.Name())
		}
	}
	if cmd.Flags().Lookup(args[0]) != nil { // eca version
		hint = "; did you mean --" + args[0] + "?"
	}
	if hint == "" {
		hint = "; " + cmd.CommandPath() + " --help lists the commands"
	}
	return atCommand(cmd, Errorf("unknown command %q%s", args[0], hint))
}

// argumentError explains arguments that a command does not accept. accepts reports whether it would
// accept others.
func argumentError(args []string, err error, accepts func([]string) bool) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	const maxMissing = 4 // no command requires more arguments
	for n := 1; n <= maxMissing; n++ {
		if accepts(append(slices.Clone(args), make([]string, n)...)) {
			return Errorf("an argument is missing")
		}
	}
	for n := len(args) - 1; n > 0; n-- {
		if accepts(args[:n]) {
			return Errorf("too many arguments: %s", quoted(args[n:]))
		}
	}
	return Errorf("unexpected arguments: %s", quoted(args))
}

func quoted(args []string) string {
	var out []string
	for _, a := range args {
		out = append(out, fmt.Sprintf("%q", a))
	}
	return strings.Join(out, " ")
}

// flagError explains an unknown flag or an invalid value.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() { // the command is unknown, so its flags are too
		if unknownErr := rejectUnknownCommand(cmd, cmd.Flags().Args()); unknownErr != nil {
			return unknownErr
		}
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	hint := "; see " + cmd.CommandPath() + " --help"
	if strings.Contains(cmd.Use, "-- COMMAND") {
		hint = "; if it belongs to the command, put -- before the command"
	}
	switch {
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return atCommand(cmd, Errorf("unknown flag -%s%s", name, hint))
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if best := suggest.Nearest(name, names); best != "" {
			hint = fmt.Sprintf("; did you mean --%s?", best)
		}
		return atCommand(cmd, Errorf("unknown flag --%s%s", name, hint))
	case errors.As(err, &missing):
		return atCommand(cmd, Errorf("--%s needs a value: %s", missing.GetFlag().Name, missing.GetFlag().Usage))
	case errors.As(err, &invalid):
		return atCommand(cmd, Errorf("--%s cannot be %q: it must be %s", invalid.GetFlag().Name, invalid.GetValue(), acceptedValues(invalid.GetFlag(), invalid.Unwrap())))
	}
	return atCommand(cmd, New(err))
}

// acceptedValues describes the values that a flag accepts; cause is why it rejected a value.
func acceptedValues(f *pflag.Flag, cause error) string {
	texts := map[string]string{
		"bool": "true or false", "duration": "a duration such as 30s, 5m or 1h", "func": "NAME=VALUE",
	}
	text, known := texts[f.Value.Type()]
	switch {
	case known:
	case strings.HasPrefix(f.Value.Type(), "uint"):
		text = "a whole number that is not negative"
	case strings.HasPrefix(f.Value.Type(), "int"), f.Value.Type() == "count":
		text = "a whole number"
	case strings.HasPrefix(f.Value.Type(), "float"):
		text = "a number"
	default:
		text = "a valid value (" + cause.Error() + ")"
	}
	if errors.Is(cause, strconv.ErrRange) {
		text += " of ordinary size"
	}
	return text
}

// Message returns the text of an error for the user. It removes the name of a failed system call before
// a file's path, and the path itself if the text has just named it.
func Message(err error) string {
	text := err.Error()
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		before, after, found := strings.Cut(text, path.Op+" "+path.Path+": ")
		if found && !strings.HasSuffix(before, path.Path+": ") {
			before += path.Path + ": "
		}
		text = before + after
	}
	return text
}

// Report writes a usage error. It reports whether err is one; the program should then exit with
// ExitCode.
func Report(w io.Writer, err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	fmt.Fprintf(w, "%s: %v\nUsage: %s\n", e.command, err, e.line)
	return true
}
