package main

import (
	"strings"
	"testing"
)

// Commands take their manifest with a flag and as a bare path.
func TestManifestArgument(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	for _, command := range []string{"run", "validate"} {
		for _, form := range [][]string{{m}, {"--manifest", m}, {"-m", m}, {"--manifest=" + m}, {"-m", m, m}} {
			if r := invoke(t, append([]string{command}, form...)...); r.code != 0 {
				t.Errorf("%s %q: exit %d: %s", command, form, r.code, r.err)
			}
		}
		for _, form := range [][]string{nil, {m, "other.yaml"}, {"-m", m, "other.yaml"}} {
			if r := invoke(t, append([]string{command}, form...)...); r.code != 2 || !strings.Contains(r.err, "manifest") || r.out != "" {
				t.Errorf("%s %q: exit %d: %s", command, form, r.code, r.err)
			}
		}
	}
}
