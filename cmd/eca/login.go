package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/daemon"
)

const loginHelp = `Logs in to a model provider: with an API key, or at the authorisation server in
providers.<name>.auth of the configuration. Without a provider, lists the providers.

The key is read from the terminal, which does not show it, or from standard input:
eca login openai < key.txt
eca asks the provider whether it accepts the key, and does not store a key that it refuses.`

func loginCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var method string
	cmd := &cobra.Command{
		Use:   "login [PROVIDER]",
		Short: "Log in to a provider of models",
		Long:  loginHelp,
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := loginDaemon(*sf, cmd, stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			if len(args) == 0 {
				return listLogins(d, stdout)
			}
			l := login{d: d, provider: args[0], in: bufio.NewReader(stdin), out: stdout, notices: stderr}
			if f, ok := stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
				l.terminal = f
			}
			err = l.run(cmd.Context(), method)
			if err != nil && (cmd.Context().Err() != nil || errors.Is(err, errInterrupted)) {
				if errors.Is(err, context.Canceled) { // the signal ended a check of the key
					err = errors.New("interrupted; the login is unchanged")
				}
				fmt.Fprintln(stderr, "eca login:", err)
				return exitError{exitInterrupted}
			}
			return explainUnknownProvider(d, args[0], err)
		},
	}
	cmd.Flags().StringVar(&method, "method", "", "how to log in: api-key, oauth (in a browser) or device (with a code); default: the provider's only method, or eca asks")
	return cmd
}

func logoutCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "logout PROVIDER",
		Short: "Forget the login to a provider",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := loginDaemon(*sf, cmd, stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			loggedIn := d.LoggedIn(args[0])
			notice, err := d.Logout(cmd.Context(), args[0])
			if err != nil {
				return explainUnknownProvider(d, args[0], err)
			}
			if loggedIn {
				fmt.Fprintf(stdout, "Logged out of %s.\n", args[0])
			} else {
				fmt.Fprintf(stdout, "There was no login to %s.\n", args[0])
			}
			if notice != "" {
				fmt.Fprintln(stdout, notice)
			}
			return nil
		},
	}
}

// loginDaemon is like daemonShowingMistakes, but fails if the stored logins cannot be used. In that case it
// does not list mistakes in the configuration.
func loginDaemon(sf serverFlags, cmd *cobra.Command, stderr io.Writer) (*daemon.Daemon, error) {
	d, err := daemonForCwd(withHumanLogLevel(sf, cmd), stderr)
	if err != nil {
		return nil, err
	}
	if err := d.CheckLogins(); err != nil {
		d.Close()
		return nil, err
	}
	printMistakes(d, cmd, stderr)
	return d, nil
}

// explainUnknownProvider adds a hint to an error about an unknown provider: how to list the known ones.
func explainUnknownProvider(d *daemon.Daemon, name string, err error) error {
	if _, known := d.Config().ProviderNamed(name); err == nil || known || strings.Contains(err.Error(), "did you mean") {
		return err
	}
	return fmt.Errorf("%w; `eca login` lists the providers", err)
}

// listLogins lists the providers that support or have a login, with their state.
func listLogins(d *daemon.Daemon, out io.Writer) error {
	for _, p := range d.Providers() {
		if len(p.Methods) == 0 && p.Auth.Source != auth.FromLogin {
			continue
		}
		var methods []string
		for _, m := range p.Methods {
			methods = append(methods, m.Key)
		}
		state := string(p.Auth.State)
		if p.Auth.Source != "" {
			state += " (" + string(p.Auth.Source) + ")"
		}
		fmt.Fprintf(out, "%s: %s; %s\n", p.Spelled, state, strings.Join(methods, ", "))
	}
	return nil
}

// login is one run of eca login.
type login struct {
	d        *daemon.Daemon
	provider string
	in       *bufio.Reader
	out      io.Writer
	notices  io.Writer
	terminal *os.File // nil if stdin is not a terminal: values are read without a prompt
}

func (l login) run(ctx context.Context, method string) error {
	step, err := l.d.Login(ctx, l.provider, method)
	if err != nil {
		return err
	}
	if step.Action == auth.ActionChoose {
		if method, err = l.choose(ctx, step); err != nil {
			return err
		}
		if step, err = l.d.Login(ctx, l.provider, method); err != nil {
			return err
		}
	}
	if step.Message != "" && (step.Wait != nil || l.terminal != nil) {
		fmt.Fprintln(l.out, step.Message)
	}
	outcome, notice := "", ""
	if step.Wait == nil {
		outcome, notice, err = l.enter(ctx, step.Fields)
	} else {
		notice, err = l.wait(ctx, step)
	}
	if err != nil {
		return err
	}
	if outcome != "" {
		fmt.Fprintln(l.out, outcome)
	}
	fmt.Fprintf(l.out, "Logged in to %s.\n", l.provider)
	if notice != "" {
		fmt.Fprintln(l.out, notice)
	}
	return nil
}

// choose asks for the login method. Without a terminal, --method has to name it.
func (l login) choose(ctx context.Context, step auth.Step) (string, error) {
	var keys []string
	for _, m := range step.Methods {
		keys = append(keys, m.Key)
	}
	if l.terminal == nil {
		return "", fmt.Errorf("provider %s can be logged in to in several ways; choose one with --method: %s", l.provider, strings.Join(keys, ", "))
	}
	for _, m := range step.Methods {
		fmt.Fprintf(l.out, "%s: %s\n", m.Key, m.Label)
	}
	line, err := l.value(ctx, "Method ["+keys[0]+"]", false)
	if line == "" {
		line = keys[0]
	}
	return line, err
}

// enter reads values and submits them.
func (l login) enter(ctx context.Context, fields []auth.Field) (outcome, notice string, err error) {
	values := map[string]string{}
	for _, f := range fields {
		values[f.Key], err = l.value(ctx, f.Label, f.Secret)
		if l.terminal == nil && len(fields) > 1 && errors.Is(err, errNotLoggedIn) {
			err = fmt.Errorf("%w; standard input needs one line for each of these, in this order: %s", err, labels(fields))
		}
		if err != nil {
			return "", "", err
		}
	}
	if rest, _ := l.in.Peek(l.in.Buffered()); l.terminal == nil && len(bytes.TrimSpace(rest)) > 0 {
		return "", "", fmt.Errorf("standard input has more lines than are needed (%s); the login is unchanged", labels(fields))
	}
	waiting := noticeIfSlow(l.notices, "Waiting for "+l.provider+" to check the key")
	outcome, err = l.d.CheckKey(ctx, l.provider, values)
	waiting.Stop()
	if err != nil {
		return "", "", err
	}
	notice, err = l.d.LoginInput(ctx, l.provider, values)
	return outcome, notice, err
}

// labels joins the labels of fields.
func labels(fields []auth.Field) string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Label)
	}
	return strings.Join(out, ", ")
}

// value prompts with label and reads a value, without echo if it is secret. The user can abort with
// Ctrl-D or a signal; the terminal is restored in either case.
func (l login) value(ctx context.Context, label string, secret bool) (string, error) {
	hidden := secret && l.terminal != nil
	// Raw mode, because otherwise a read cannot detect Ctrl-D. It is set before the label is shown,
	// because a Ctrl-D that was typed before would later be read as a zero byte.
	if hidden {
		state, err := term.MakeRaw(int(l.terminal.Fd()))
		if err != nil {
			return "", err
		}
		defer fmt.Fprintln(l.out)
		defer func() { _ = term.Restore(int(l.terminal.Fd()), state) }()
	}
	if l.terminal != nil {
		fmt.Fprintf(l.out, "%s: ", label)
	}
	type input struct {
		text string
		err  error
	}
	read := make(chan input, 1)
	go func() { // runs until the input ends, or until the process exits
		if !hidden {
			text, err := l.line()
			read <- input{text, err}
			return
		}
		keys := &hiddenInput{Reader: l.terminal, Writer: io.Discard}
		text, err := term.NewTerminal(keys, "").ReadPassword("")
		if errors.Is(err, io.EOF) && keys.interrupt {
			err = errInterrupted
		}
		read <- input{strings.TrimSpace(text), err}
	}()
	select {
	case in := <-read:
		if errors.Is(in.err, io.EOF) {
			in.err = errNotLoggedIn
		}
		return in.text, in.err
	case <-ctx.Done():
		return "", errNotLoggedIn
	}
}

// hiddenInput reads a raw terminal without echo, and detects Ctrl-C: ReadPassword ends with io.EOF
// for both Ctrl-C and Ctrl-D.
type hiddenInput struct {
	io.Reader
	io.Writer

	interrupt bool
}

// Read implements io.Reader.
func (k *hiddenInput) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	k.interrupt = k.interrupt || bytes.IndexByte(p[:n], 3) >= 0
	return n, err
}

// errNotLoggedIn means that the user aborted the login.
var errNotLoggedIn = errors.New("nothing was entered; the login is unchanged")

// errInterrupted means that the user aborted with Ctrl-C.
var errInterrupted = fmt.Errorf("%w", errNotLoggedIn)

// maxLine bounds a line of input.
const maxLine = 64 << 10

// line reads a line of input. It returns io.EOF at the end of the input.
func (l login) line() (string, error) {
	var text []byte
	for len(text) < maxLine {
		c, err := l.in.ReadByte()
		if err == nil && c == '\n' || errors.Is(err, io.EOF) && len(text) > 0 {
			return strings.TrimSpace(string(text)), nil
		}
		if err != nil {
			return "", err
		}
		text = append(text, c)
	}
	return "", fmt.Errorf("the value is longer than %d bytes", maxLine)
}

// wait shows the URL for the login. It waits until the login is complete, or until the user enters
// the code or the address that the browser received.
func (l login) wait(ctx context.Context, step auth.Step) (string, error) {
	fmt.Fprintln(l.out, printable(step.URL))
	if step.Code != "" {
		fmt.Fprintf(l.out, "Code: %s\n", printable(step.Code))
	}
	type outcome struct {
		notice string
		err    error
	}
	done := make(chan outcome, 2)
	go func() {
		notice, err := step.Wait(ctx)
		if !errors.Is(err, auth.ErrAnswered) {
			done <- outcome{notice, err}
		}
	}()
	if len(step.Fields) > 0 {
		go func() { // runs until the input ends, or until the process exits
			for {
				text, err := l.line()
				if errors.Is(err, io.EOF) && l.terminal != nil {
					done <- outcome{"", errNotLoggedIn}
				}
				if err != nil || text == "" && l.terminal == nil {
					return
				}
				if text == "" {
					continue
				}
				notice, err := l.d.LoginInput(ctx, l.provider, map[string]string{step.Fields[0].Key: text})
				var invalid *auth.InvalidError
				if errors.As(err, &invalid) && l.terminal != nil {
					fmt.Fprintln(l.out, invalid.Reason)
					continue
				}
				done <- outcome{notice, err}
				return
			}
		}()
	}
	select {
	case got := <-done:
		if !errors.Is(got.err, context.Canceled) {
			return got.notice, got.err
		}
	case <-ctx.Done():
	}
	return "", errNotLoggedIn
}
