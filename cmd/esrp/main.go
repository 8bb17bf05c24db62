// Command esrp checks, canonicalises and hashes ESRP records, reads the journal of eca, and
// serves requests.
//
// Outputs and exit codes are those of the reference program (esrp.md 10): 0 success; 1 the data is
// invalid or cannot be read; 2 wrong usage; 130 interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// version is the version of the reference program that this one replaces.
const version = "0.1.0"

func main() {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdin, usage.NewOutput(os.Stdout), os.Stderr))
}

// exitData is the exit code for invalid data and all failures other than wrong usage.
const exitData = 1

// dataError is the error of a failed step.
type dataError struct {
	step  string
	cause error
}

func (e *dataError) Error() string { return e.step + ": " + e.cause.Error() }

func (e *dataError) Unwrap() error { return e.cause }

// step returns the error of a step, or nil if it succeeded.
func step(name string, err error) error {
	if err == nil {
		return nil
	}
	return &dataError{name, err}
}

// run runs a command and returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := command(stdin)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	_, err := usage.Execute(ctx, root)
	var data *dataError
	if writeErr := usage.WriteError(stdout); writeErr != nil {
		fmt.Fprintln(stderr, "esrp: cannot write the output:", usage.Message(writeErr))
		return exitData
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "esrp: interrupted")
		return usage.Interrupted
	case errors.As(err, &data):
		cause := strings.ReplaceAll(data.cause.Error(), "\n", "\n    ")
		fmt.Fprintf(stderr, "Error: %s\n\nCaused by:\n    %s\n", data.step, cause)
		return exitData
	case usage.Report(stderr, err):
		return usage.ExitCode
	}
	fmt.Fprintln(stderr, "esrp:", err)
	return exitData
}

func command(stdin io.Reader) *cobra.Command {
	root := &cobra.Command{
		Use:           "esrp",
		Short:         "Records of calls: check, canonicalise, hash, read the journal",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	files := &files{stdin}
	root.AddCommand(validateCommand(files), canonicalizeCommand(files), hashCommand(files), parseCommand(), journalCommand(), replayCommand(),
		serveCommand(), workerCommand(), keysCommand())
	usage.Strict(root)
	return root
}

// maxFile bounds the files that commands name, in bytes.
const maxFile = 4 << 30

// files reads the files that commands name; - is standard input.
type files struct{ stdin io.Reader }

// read returns a file's content. It stops waiting for standard input, or another stream, when ctx ends.
func (f *files) read(ctx context.Context, name string) (doc []byte, err error) {
	if name == "-" {
		doc, err = f.readStdin(ctx)
	} else {
		doc, err = safeio.ReadInput(ctx, name, maxFile)
	}
	return doc, step("Failed to read file: "+name, err)
}

func (f *files) readStdin(ctx context.Context) ([]byte, error) {
	type result struct {
		doc []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		doc, err := io.ReadAll(f.stdin)
		done <- result{doc, err}
	}()
	select {
	case r := <-done:
		return r.doc, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func validateCommand(f *files) *cobra.Command {
	var response, strict bool
	c := f.fileCommand("validate FILE", "Check a request, or with --response a response", func(name string, doc []byte) (string, error) {
		kind, kindTitle := "request", "Request"
		if response {
			kind, kindTitle = "response", "Response"
		}
		r, err := decode(doc, response)
		if err == nil {
			err = checkUnique(doc)
		}
		if err != nil {
			return "", &dataError{fmt.Sprintf("Failed to parse %s as ESRP %s", name, kind), err}
		}
		check := r.Validate
		if strict {
			check = r.ValidateStrictly
		}
		return "Valid ESRP " + kind + "\n", step(kindTitle+" validation failed", check())
	})
	c.Flags().BoolVarP(&response, "response", "r", false, "the file is a response")
	c.Flags().BoolVar(&strict, "strict", false, "also check what a service has to check: hashes, encodings, paths")
	return c
}

// record is a request or a response.
type record interface {
	Value() esrp.Value
	Validate() error
	ValidateStrictly() error
}

func decode(doc []byte, response bool) (record, error) {
	if response {
		return esrp.DecodeResponse(doc)
	}
	return esrp.DecodeRequest(doc)
}

// checkUnique refuses objects with duplicate keys, also in params and other free-form values, because
// readers differ in which of them they use.
func checkUnique(doc []byte) error {
	v, err := esrp.Parse(doc)
	if err != nil {
		return err
	}
	if path, ok := v.Duplicate(); ok {
		return &esrp.DecodeError{Field: path, Reason: "duplicate field"}
	}
	return nil
}

// decodeAny decodes a response or a request. Only responses have a status.
func decodeAny(doc []byte) (record, error) {
	v, err := esrp.Parse(doc)
	if err != nil {
		return nil, err
	}
	_, response := v.Get("status")
	return decode(doc, response)
}

// canonicalForm returns the canonical form of a document or, if typed is set, of the record in it.
func canonicalForm(name string, doc []byte, typed bool) ([]byte, error) {
	var v esrp.Value
	var err error
	if typed {
		var r record
		if r, err = decodeAny(doc); err != nil {
			return nil, &dataError{fmt.Sprintf("Failed to parse %s as ESRP record", name), err}
		}
		v = r.Value()
	} else if v, err = esrp.Parse(doc); err != nil {
		return nil, &dataError{fmt.Sprintf("Failed to parse %s as JSON", name), err}
	}
	out, err := v.Canonical()
	return out, step("Failed to generate canonical JSON", err)
}

// fileCommand returns a command that prints what render returns for a file.
func (f *files) fileCommand(use, short string, render func(name string, doc []byte) (string, error)) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := f.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			text, err := render(args[0], doc)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
}

func canonicalizeCommand(f *files) *cobra.Command {
	var typed bool
	c := f.fileCommand("canonicalize FILE", "Print a document's canonical JSON, without a trailing newline", func(name string, doc []byte) (string, error) {
		out, err := canonicalForm(name, doc, typed)
		return string(out), err
	})
	c.Flags().BoolVar(&typed, "typed", false, "of the record, with its defaults and normal forms")
	return c
}

func hashCommand(f *files) *cobra.Command {
	var typed, payload bool
	c := f.fileCommand("hash FILE", "Print the SHA-256 of a document's canonical JSON", func(name string, doc []byte) (string, error) {
		hash, err := hashOf(name, doc, typed, payload)
		return hash + "\n", err
	})
	c.Flags().BoolVar(&typed, "typed", false, "of the record, with its defaults and normal forms")
	c.Flags().BoolVar(&payload, "payload", false, "of a request's target, inputs and parameters")
	c.MarkFlagsMutuallyExclusive("typed", "payload")
	return c
}

func hashOf(name string, doc []byte, typed, payload bool) (string, error) {
	if payload {
		r, err := esrp.DecodeRequest(doc)
		if err != nil {
			return "", &dataError{fmt.Sprintf("Failed to parse %s as ESRP request", name), err}
		}
		hash, err := r.HashPayload()
		return hash, step("Failed to compute hash", err)
	}
	out, err := canonicalForm(name, doc, typed)
	if failed := (*dataError)(nil); errors.As(err, &failed) && errors.Is(failed.cause, esrp.ErrFloat) {
		failed.step = "Failed to compute hash"
	}
	if err != nil {
		return "", err
	}
	return esrp.HashBytes(out), nil
}

func parseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "parse URI",
		Short: "Take a workspace URI apart",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			u, err := esrp.ParseURI(args[0])
			if err != nil {
				return &dataError{"Failed to parse workspace URI: " + args[0], err}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Namespace: %s\nPath: %s\nFull URI: %s\n", u.Namespace, u.Path, u)
			return err
		},
	}
}
