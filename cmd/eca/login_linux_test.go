package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Whoever does not want to enter a key after all gets out with Ctrl-C and Ctrl-D.
func TestLoginCanBeLeft(t *testing.T) {
	needs.Program(t, "script", "bsdutils")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]string{"Ctrl-C": "\x03", "Ctrl-D": "\x04"} {
		t.Run(name, func(t *testing.T) {
			here := newPlace(t)
			cmd := exec.Command("script", "-qec", self+" login openai", "/dev/null") // which gives it a terminal
			cmd.Dir, cmd.Env = here.root, append(here.env, "SHELL=/bin/sh")
			in, out := startPiped(t, cmd)
			timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			said, r := "", bufio.NewReader(out)
			for !strings.Contains(said, "API key:") {
				b, err := r.ReadByte()
				if err != nil {
					t.Fatalf("it ends after %q: %v", said, err)
				}
				said += string(b)
			}
			if _, err := in.Write([]byte(key)); err != nil {
				t.Fatal(err)
			}
			rest := make(chan string, 1)
			go func() {
				var text strings.Builder
				_, _ = r.WriteTo(&text)
				rest <- text.String()
			}()
			_ = cmd.Wait()
			said += <-rest
			if code := cmd.ProcessState.ExitCode(); code != 1 && code != exitInterrupted || !strings.Contains(said, "nothing was entered") {
				t.Errorf("exit code %d: %q", code, said)
			}
		})
	}
}
