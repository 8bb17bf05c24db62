package daemon

import "strings"

// resumeSearches finishes searches in workspace folders that an earlier eca process did not finish:
// searches for protected files that sandboxed commands created.
func (d *Daemon) resumeSearches(roots []string) {
	var lines []string
	for _, outcome := range d.heldBack.Resume(roots) {
		for _, line := range outcome.Lines() {
			lines = append(lines, "Sandbox: "+line+".")
			d.opts.Log.Warn("sandbox", "found", line)
		}
	}
	if len(lines) > 0 {
		notice := strings.Join(lines, "\n")
		d.searchNotice.Store(&notice)
	}
}
