package daemon

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/internal/doctor"
)

const retentionKey = "chatRetentionDays"

// retention is how long chats are kept after their last change; 0 keeps them. A value that
// is wrong, or in a file that cannot be read, deletes nothing, and neither does that of a
// workspace's file: it would delete the chats of others.
func (s *services) retention() time.Duration {
	cfg := s.Config()
	if cfg == nil || len(cfg.MistakesAt(retentionKey)) > 0 || len(cfg.Broken()) > 0 || s.retentionOfWorkspace() != "" {
		return 0
	}
	const longest = 100 * 365
	return time.Duration(min(cfg.ChatRetentionDays, longest)) * 24 * time.Hour
}

// retentionOfWorkspace returns the file of a workspace folder that sets the key, if one does.
func (s *services) retentionOfWorkspace() string {
	o, ok := s.Config().Origin(retentionKey)
	if !ok {
		return ""
	}
	for _, root := range s.Roots() {
		if rel, err := filepath.Rel(root, o.Source); err == nil && filepath.IsLocal(rel) && filepath.IsAbs(o.Source) && o.Source != s.Config().Owner("") {
			return o.Source
		}
	}
	return ""
}

// undoAge is how long a change of a file can be undone: no longer than its chat is kept.
func (s *services) undoAge() time.Duration {
	if age := s.retention(); age > 0 {
		return min(age, maxUndoAge)
	}
	return maxUndoAge
}

// checkKept says what is kept, how much, and for how long.
func (k *checkup) checkKept(ctx context.Context) []doctor.Finding {
	if file := k.retentionOfWorkspace(); file != "" {
		return []doctor.Finding{doctor.Found(doctor.Warning, "kept", "%s in %s does not count: it would delete the chats of other workspaces; set it in your own configuration", retentionKey, file)}
	}
	kept, err := k.store.Kept(ctx)
	if err != nil {
		return nil // the finding about chats says so
	}
	until := "until you delete them"
	if age := k.retention(); age > 0 {
		until = fmt.Sprintf("for %s after their last change (%s)", doctor.Count(int(age/(24*time.Hour)), "day"), retentionKey)
	}
	dir := filepath.Dir(k.store.Path())
	var sizes []string
	for _, part := range []struct{ name, path string }{
		{"store", filepath.Join(dir, store.File+"*")},
		{"search index", filepath.Join(dir, search.File+"*")},
		{"replaced files", filepath.Join(dir, "artifacts")},
		{"undo points", filepath.Join(dir, "undo")},
		{"journal", filepath.Join(dir, "journal")},
		{"tool outputs", k.outputs.Dir()},
	} {
		sizes = append(sizes, fmt.Sprintf("%s %.1f MB", part.name, float64(sizeOf(ctx, part.path))/1e6))
	}
	return []doctor.Finding{doctor.Found(doctor.OK, "kept", "%s (%d pinned), kept %s; %s", doctor.Count(kept.Chats, "chat"), kept.Pinned, until, strings.Join(sizes, ", "))}
}

// sizeOf returns how many bytes the files of a pattern have, and those below its folders. What
// cannot be read counts as nothing.
func sizeOf(ctx context.Context, pattern string) (total int64) {
	paths, _ := filepath.Glob(pattern)
	for _, p := range paths {
		_ = filepath.WalkDir(p, func(_ string, e fs.DirEntry, err error) error {
			if err != nil || ctx.Err() != nil {
				return ctx.Err()
			}
			if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
				total += info.Size()
			}
			return nil
		})
	}
	return total
}
