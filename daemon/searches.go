package daemon

import "strings"

// resumeSearches makes up for the searches that are due in some workspace folders: for protected
// places that commands made before eca was ended.
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
