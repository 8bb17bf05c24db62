package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// If the output of a program is not read any more, the program ends silently, as shells expect.
func TestUnreadOutputEndsQuietly(t *testing.T) {
	needs.POSIX(t)
	for _, args := range [][]string{{"config", "schema"}, {"--help"}, {"models"}, {"doctor", "--offline"}, {"config", "show"}} {
		cmd := newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL=http://127.0.0.1:1").command(args...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		cmd.Stdout, cmd.Stderr = w, &stderr
		_ = r.Close()
		_ = cmd.Run()
		_ = w.Close()
		if strings.Contains(stderr.String(), "pipe") {
			t.Errorf("%q: %s", args, &stderr)
		}
	}
}

// Ctrl-C ends each command soon, with the exit code that shells expect.
func TestInterruptedCommandsExitAsShellsExpect(t *testing.T) {
	needs.POSIX(t)
	needs.Long(t) // each command says what it waits for after seconds
	hang := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer hang.Close()
	for args, said := range map[string]string{"mcp test slow": "Starting", "doctor": "Waiting", "models": "Waiting", "exec hi": ""} {
		here := newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL="+hang.URL, `ECA_CONFIG={"mcpServers": {"slow": {"command": "sleep", "args": ["100"]}}}`)
		cmd := here.command(strings.Fields(args)...)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		kill := time.AfterFunc(maxWrongTime, func() { _ = cmd.Process.Kill() })
		var out strings.Builder
		for line := bufio.NewScanner(stderr); line.Scan(); {
			out.WriteString(line.Text() + "\n")
			if strings.Contains(line.Text(), said) {
				_ = cmd.Process.Signal(os.Interrupt)
			}
		}
		_ = cmd.Wait()
		kill.Stop()
		if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || strings.Contains(out.String(), "context canceled") || strings.Contains(out.String(), "has not started") {
			t.Errorf("%s: exit code %d: %s", args, code, &out)
		}
	}
}
