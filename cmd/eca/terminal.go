package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// askTerminal asks about a call; asked is false if there is no terminal.
func askTerminal(ctx context.Context, call toolRun) (approve, asked bool) {
	return askTerminalLine(ctx, call.question())
}

// askTerminalLine asks on the controlling terminal, which is not stdin: that may be a pipe.
// Without a terminal the answer is no, and nobody was asked.
func askTerminalLine(ctx context.Context, question string) (yes, asked bool) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	r, err := os.OpenFile(in, os.O_RDONLY, 0)
	if err != nil {
		return false, false
	}
	defer r.Close()
	w, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		return false, false
	}
	defer w.Close()
	fmt.Fprint(w, question)
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r).ReadString('\n')
		answer <- line
	}()
	select {
	case line := <-answer:
		a := strings.ToLower(strings.TrimSpace(line))
		return a == "y" || a == "yes", true
	case <-ctx.Done():
		return false, true
	}
}

// question is what the user is asked about a call.
func (r toolRun) question() string {
	text := fmt.Sprintf("\n%s wants to run: %s\n%s\n", r.Name, r.Summary, r.Args)
	if r.Permission.Reason != "" {
		text += "Asked because: " + r.Permission.Reason + "\n"
	}
	if r.Details.Diff != "" {
		text += r.Details.Diff + "\n"
	}
	return visible.Text(text) + "Allow? [y/N] "
}
