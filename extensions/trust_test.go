package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Programs and outside files named by a workspace's files wait for the user's trust; texts
// do not.
func TestTrust(t *testing.T) {
	needs.Symlinks(t)
	h := newHouse(t)
	var expanded []string
	h.in.Expand = func(text, _, _ string) (string, []string, error) {
		expanded = append(expanded, text)
		return strings.ReplaceAll(text, "${cmd:id}", "RAN"), nil, nil
	}
	trusted := map[string]bool{}
	h.in.Trusts = func(u config.Unit) bool { return trusted[u.Sum] }
	h.write("home/rules/mine.md", "mine ${cmd:id}")
	h.write("ws/.eca/rules/plain.md", "plain ${file:../x.md}")
	h.write("ws/.eca/rules/runs.md", "runs ${cmd:id}")
	h.write("ws/.eca/commands/env.md", "${env:SECRET}")
	h.write("elsewhere/secret.md", "secret")
	h.write("ws/.eca/agents/ok.md", "${cmd:id}") // the configuration's business
	for _, link := range []string{"rules/out.md", "agents/out.md"} {
		if err := os.Symlink(filepath.Join(h.dir, "elsewhere", "secret.md"), filepath.Join(h.dir, "ws/.eca", link)); err != nil {
			t.Fatal(err)
		}
	}
	said := func() string {
		set, _ := h.loader.Load(h.in)
		var out []string
		for _, r := range set.Rules {
			out = append(out, r.Text)
		}
		for _, a := range set.Agents {
			out = append(out, "agent "+a.ID)
		}
		for _, c := range set.Commands {
			out = append(out, "command "+c.Name)
		}
		for _, u := range set.Units {
			out = append(out, fmt.Sprintf("%s %v %v", h.rel(u.File), u.Needs, u.Trusted))
		}
		slices.Sort(out)
		return strings.Join(out, "\n")
	}
	before := `agent ok
mine RAN
plain ${file:../x.md}
ws/.eca/agents/out.md [{a link that leads out of the folder 0}] false
ws/.eca/commands/env.md [{${env:SECRET} 1}] false
ws/.eca/rules/out.md [{a link that leads out of the folder 0}] false
ws/.eca/rules/runs.md [{${cmd:id} 1}] false`
	if got := said(); got != before {
		t.Errorf("before:\n%s", got)
	}
	if slices.ContainsFunc(expanded, func(text string) bool { return strings.HasPrefix(text, "runs") || strings.Contains(text, "SECRET") }) {
		t.Errorf("expanded %q", expanded)
	}
	set, _ := h.loader.Load(h.in)
	for _, u := range set.Units {
		trusted[u.Sum] = true
	}
	if got := said(); !strings.Contains(got, "runs RAN") || !strings.Contains(got, "secret\n") || !strings.Contains(got, "agent out") || strings.Contains(got, "false") {
		t.Errorf("trusted:\n%s", got)
	}
	h.write("ws/.eca/rules/runs.md", "runs ${cmd:id} again")
	if got := said(); strings.Contains(got, "runs RAN again") || !strings.Contains(got, "ws/.eca/rules/runs.md [{${cmd:id} 1}] false") {
		t.Errorf("changed:\n%s", got)
	}
	trusted = nil
	if got := said(); strings.Contains(got, "secret\n") || strings.Contains(got, "true") {
		t.Errorf("revoked:\n%s", got)
	}
}
