package main

import (
	"strings"
	"testing"
)

// The user can abort entering a key with Ctrl-C and Ctrl-D. Ctrl-C ends with the exit code of an
// interrupt.
func TestLoginCanBeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		key  string
		code int
	}{"Ctrl-C": {"\x03", exitInterrupted}, "Ctrl-D": {"\x04", 1}} {
		t.Run(name, func(t *testing.T) {
			o := runOnTerminal(t, newPlace(t), "login", "openai")
			o.await("API key:")
			o.press(c.key)
			if said, code := o.end(); code != c.code || !strings.Contains(said, "nothing was entered") {
				t.Errorf("exit code %d: %q", code, said)
			}
		})
	}
}
