package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/usage"
)

// askTerminal asks on the controlling terminal, because stdin may be a pipe. It discards input that
// was typed before the user saw the question. The answer is in lower case. Without a terminal, the
// answer is empty and asked is false.
func askTerminal(ctx context.Context, question string) (line string, asked bool) {
	r, w, err := openTerminal()
	if err != nil {
		return "", false
	}
	defer r.Close()
	defer w.Close()
	if discardTyped(r) != nil {
		return "", false
	}
	fmt.Fprint(usage.Visible(w), question)
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil { // Ctrl-D, which the terminal does not show
			fmt.Fprintln(w)
		}
		answer <- line
	}()
	select {
	case line := <-answer:
		return strings.ToLower(strings.TrimSpace(line)), true
	case <-ctx.Done():
		fmt.Fprintln(w)
		return "", true
	}
}

// openTerminal opens the controlling terminal.
func openTerminal() (r, w *os.File, err error) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	if r, err = os.OpenFile(in, os.O_RDWR, 0); err != nil { // Windows discards input only through handles with write access
		return nil, nil, err
	}
	if w, err = os.OpenFile(out, os.O_WRONLY, 0); err != nil {
		_ = r.Close()
		return nil, nil, err
	}
	return r, w, nil
}

// hasTerminal reports whether there is a controlling terminal to ask on.
func hasTerminal() bool {
	r, w, err := openTerminal()
	if err != nil {
		return false
	}
	_, _ = r.Close(), w.Close()
	return true
}

// discardTyped discards input that was typed and not read.
func discardTyped(terminal *os.File) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = discardInput(fd) })
	return errors.Join(err, failed)
}

// isYes reports whether an answer is yes.
func isYes(line string) bool { return line == "y" || line == "yes" }
