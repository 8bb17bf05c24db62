package repomap

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Limits and weights of a repository's log.
const (
	maxCommits   = 200
	maxTouched   = 30      // files in a commit; larger commits are ignored
	halfLife     = 50      // commits
	maxLog       = 4 << 20 // bytes
	maxRecent    = 50      // files newer than the last commit; if there are more, they come from a checkout
	editedWeight = 1.0     // of a file that was edited since the last commit
)

// history is the information from a repository's log about its files.
type history struct {
	key   string             // see logKey
	files map[string]float64 // by path: how often and how recently commits changed the file, at most 1
	last  int64              // time of the last commit in Unix nanoseconds; 0 without one

	recent map[string]bool // files that changed since the last commit
}

// weight returns a number from 0 (no recent change) to 2 (changed by most of the last commits and
// edited since).
func (h *history) weight(f *file) float64 {
	w := h.files[f.path]
	if h.recent[f.path] {
		w += editedWeight
	}
	return w
}

// findRecent finds the files that were edited since the last commit.
func (h *history) findRecent(files []*file) {
	h.recent = nil
	if h.last == 0 {
		return
	}
	recent := map[string]bool{}
	for _, f := range files {
		if f.shown() && f.mtime > h.last {
			if recent[f.path] = true; len(recent) > maxRecent {
				return
			}
		}
	}
	h.recent = recent
}

// logReading reads the log in the background while files are read.
type logReading struct {
	done chan struct{}
	log  history
}

// wait waits for the log.
func (l *logReading) wait() history {
	<-l.done
	return l.log
}

// readLog runs git log, unless nothing has changed since the last time. Without git, or outside
// a repository, the history is empty.
func (x *Index) readLog(ctx context.Context, t *tree) *logReading {
	l := &logReading{done: make(chan struct{}), log: t.history}
	key := ""
	if x.opts.Git != "" {
		key = logKey(t.root)
	}
	if key == t.history.key {
		close(l.done)
		return l
	}
	l.log = history{}
	if key == "" {
		close(l.done)
		return l
	}
	go func() {
		defer close(l.done)
		out := &proc.Head{Limit: maxLog}
		bounded, cancel := context.WithTimeout(ctx, x.gitTime)
		defer cancel()
		// The repository's own configuration must not make git execute anything.
		exit, err := x.opts.Children.Run(bounded, proc.Spec{
			Path: x.opts.Git, Dir: t.root, Stdout: out,
			Sandbox: sandbox.Policy{Level: sandbox.ReadOnly, Read: sandbox.Reads([]string{t.root}, x.opts.Getenv)},
			Args: []string{
				"-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "core.hooksPath=" + os.DevNull,
				"--no-pager", "log", "-n", strconv.Itoa(maxCommits), "--no-show-signature", "--no-ext-diff", "--no-textconv", "--no-merges",
				"--no-renames", "--no-color", "--relative", "--name-only", "--format=format:%x01%ct",
			},
			Env: []string{"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=none"},
		})
		if err == nil && exit.Code == 0 {
			l.log = parseLog(out.Bytes())
		}
		if ctx.Err() == nil {
			l.log.key = key
		}
	}()
	return l
}

// parseLog parses commits, the newest first: \x01 and the time, then a line per file.
func parseLog(out []byte) history {
	h := history{files: map[string]float64{}}
	top := 0.0
	for i, commit := range bytes.Split(out, []byte{1}) {
		if i == 0 {
			continue
		}
		lines := strings.Split(strings.TrimRight(string(commit), "\n"), "\n")
		if i == 1 {
			if seconds, err := strconv.ParseInt(lines[0], 10, 64); err == nil && seconds > 0 && seconds < 1<<33 {
				h.last = seconds * 1_000_000_000
			}
		}
		if touched := lines[1:]; len(touched) <= maxTouched {
			w := math.Exp2(-float64(i-1)/halfLife) / math.Sqrt(float64(max(len(touched), 1)))
			for _, name := range touched {
				h.files[name] += w
				top = max(top, h.files[name])
			}
		}
	}
	for name, w := range h.files {
		h.files[name] = w / top
	}
	return h
}

// maxRef is the limit for small files in .git, in bytes.
const maxRef = 1 << 20

// logKey returns a text that changes whenever the log changes. It returns "" outside a repository.
// It reads files of git and starts no program.
func logKey(root string) string {
	for dir := root; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			if info.Mode().IsRegular() { // a linked worktree
				data, err := safeio.Read(git, maxRef)
				if err != nil {
					return ""
				}
				git = strings.TrimSpace(strings.TrimPrefix(string(data), "gitdir:"))
				if !filepath.IsAbs(git) {
					git = filepath.Join(dir, git)
				}
			}
			head, err := safeio.Read(filepath.Join(git, "HEAD"), maxRef)
			if err != nil {
				return ""
			}
			key := git + "\x00" + string(head)
			if ref, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "); ok {
				if data, err := safeio.Read(filepath.Join(git, filepath.FromSlash(ref)), maxRef); err == nil {
					key += string(data)
				}
			}
			for _, name := range []string{"logs/HEAD", "packed-refs"} {
				if info, err := os.Stat(filepath.Join(git, filepath.FromSlash(name))); err == nil {
					key += fmt.Sprintf("%d %d\n", info.Size(), info.ModTime().UnixNano())
				}
			}
			return key
		}
		if filepath.Dir(dir) == dir {
			return ""
		}
	}
}
