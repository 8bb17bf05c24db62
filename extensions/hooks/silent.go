package hooks

import (
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// foundNothing reports whether a script exited with 1 because a test in it was negative, as in
// `grep -q secret && echo '{...}'` without a match, and not because it failed: it printed nothing,
// consists only of programs that distinguish the two by exit code, and hides no error messages.
func foundNothing(a action, root string, r scriptRun) bool {
	if !r.ran || r.problem != "" || r.status != 1 || !r.complete || r.stdout != "" || r.stderr != "" {
		return false
	}
	text := a.Shell
	if a.File != "" {
		data, err := safeio.Read(scriptPath(a.File, root), maxOutput)
		if err != nil {
			return false
		}
		text = string(data)
	}
	return cmdline.OnlyTests(text)
}
