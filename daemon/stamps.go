package daemon

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// fileStamp is the state of a file, without its content; zero if it does not exist.
type fileStamp struct {
	size    int64
	mode    fs.FileMode
	changed time.Time
}

// fileStamps returns the states of the files of a configuration.
func (r *reader) fileStamps(cfg *config.Loaded, roots []string) map[string]fileStamp {
	out := map[string]fileStamp{}
	for _, path := range slices.Concat(cfg.Files, r.claudeSettings(cfg, roots), []string{r.trustedFolders.File.Path}) {
		s := fileStamp{}
		if info, err := os.Stat(path); err == nil {
			s = fileStamp{info.Size(), info.Mode(), info.ModTime()}
		}
		out[path] = s
	}
	return out
}

// filesChanged reports whether a file of the configuration differs from when it was read last. The
// watcher waits for the end of a burst of changes, but a turn must not begin with a configuration that
// the user has replaced before the prompt.
func (r *reader) filesChanged() bool {
	s := r.current()
	return s.config != nil && r.stamps != nil && !maps.Equal(r.stamps, r.fileStamps(s.config, s.roots()))
}
