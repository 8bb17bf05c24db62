package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// askTerminal asks on the controlling terminal, which is not stdin: that may be a pipe. What
// was typed before the question is dropped: it is no answer to what nobody had seen. The
// answer is in small letters. Without a terminal it is empty, and asked is false.
func askTerminal(ctx context.Context, question string) (line string, asked bool) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	r, err := os.OpenFile(in, os.O_RDWR, 0) // Windows drops input only for who may write
	if err != nil {
		return "", false
	}
	defer r.Close()
	w, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		return "", false
	}
	defer w.Close()
	if forgetTyped(r) != nil {
		return "", false
	}
	fmt.Fprint(w, question)
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

// forgetTyped drops what was typed and not read.
func forgetTyped(terminal *os.File) error {
	raw, err := terminal.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = discardInput(fd) })
	return errors.Join(err, failed)
}

// isYes says whether an answer agrees.
func isYes(line string) bool { return line == "y" || line == "yes" }
