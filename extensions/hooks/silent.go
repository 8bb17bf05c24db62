package hooks

import (
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// foundNothing reports whether a script ended with 1 because a test in it was negative, as
// `grep -q secret && echo '{...}'` does without a match, and not because it failed: it was
// silent, it is made only of programs that tell the two apart, and it hides no messages.
func foundNothing(a action, root string, r ran) bool {
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
