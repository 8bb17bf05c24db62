package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// askTerminal asks on the controlling terminal, which is not stdin: that may be a pipe. The
// answer is in small letters. Without a terminal it is empty, and asked is false.
func askTerminal(ctx context.Context, question string) (line string, asked bool) {
	in, out := "/dev/tty", "/dev/tty"
	if runtime.GOOS == "windows" {
		in, out = "CONIN$", "CONOUT$"
	}
	r, err := os.OpenFile(in, os.O_RDONLY, 0)
	if err != nil {
		return "", false
	}
	defer r.Close()
	w, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		return "", false
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
		return strings.ToLower(strings.TrimSpace(line)), true
	case <-ctx.Done():
		fmt.Fprintln(w)
		return "", true
	}
}

// isYes says whether an answer agrees.
func isYes(line string) bool { return line == "y" || line == "yes" }
