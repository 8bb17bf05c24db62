package chat

import (
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSessionTransitions(t *testing.T) {
	legal := map[[2]state]bool{{idle, running}: true, {idle, closed}: true, {running, idle}: true}
	for _, from := range []state{idle, running, closed} {
		for _, to := range []state{idle, running, closed} {
			if from.canBecome(to) != legal[[2]state{from, to}] {
				t.Errorf("from %s to %s: %v", from, to, from.canBecome(to))
			}
		}
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "6ba7b810-9dad-11d1-80b4-00c04fd430c8": true, "1": true, "": false, "subagent-1": false, "a b": false, "a\n": false,
		strings.Repeat("x", 256): true, strings.Repeat("x", 257): false, "日本": true,
	} {
		if ValidID(id) != want {
			t.Errorf("%q: %v", id, !want)
		}
	}
}
