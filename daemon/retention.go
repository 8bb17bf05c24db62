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

// retention returns how long chats are kept after their last change; 0 means forever. It returns 0
// if the value is invalid or if a configuration file cannot be read.
func (s *services) retention() time.Duration {
	cfg := s.Config()
	if cfg == nil || len(cfg.MistakesAt(retentionKey)) > 0 || len(cfg.Broken()) > 0 {
		return 0
	}
	const maxDays = 100 * 365
	return time.Duration(min(cfg.ChatRetentionDays, maxDays)) * 24 * time.Hour
}

// undoAge returns how long a change of a file can be undone: no longer than its chat is kept.
func (s *services) undoAge() time.Duration {
	if age := s.retention(); age > 0 {
		return min(age, maxUndoAge)
	}
	return maxUndoAge
}

// checkStoredData reports what is stored, how large it is, and how long it is kept.
func (k *checkup) checkStoredData(ctx context.Context) []doctor.Finding {
	count, err := k.store.CountChats(ctx)
	if err != nil {
		return nil // checkStore reports the error
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
	return []doctor.Finding{doctor.Found(doctor.OK, "stored data", "%s (%d pinned), kept %s; %s", doctor.Count(count.Chats, "chat"), count.Pinned, until, strings.Join(sizes, ", "))}
}

// sizeOf returns the total size in bytes of the files that match a pattern, including the files in
// matching folders. Unreadable files count as 0.
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
