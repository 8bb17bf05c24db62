package plugins

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// currentFile holds the commit that is used unless another one is pinned.
const currentFile = "current"

// repository is a git repository at one commit, or at the newest if commit is empty.
type repository struct{ location, commit string }

// IsGit reports whether a location is a repository's URL rather than a folder.
func IsGit(location string) bool {
	return strings.Contains(location, ":") && regexp.MustCompile(`^(https?|ssh|git|file)://|^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9[][A-Za-z0-9.:\]-]*:[^\\]`).MatchString(location)
}

func newRepository(s Source) (repository, error) {
	if s.Commit != "" && !isCommit(s.Commit) {
		return repository{}, fmt.Errorf("commit must be a full commit id, 40 or 64 characters 0-9 and a-f, not %.80q", s.Commit)
	}
	return repository{s.Location, s.Commit}, nil
}

func isCommit(s string) bool {
	return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`).MatchString(s)
}

// withoutSecrets returns a URL without credentials.
func withoutSecrets(location string) string {
	u, err := url.Parse(location)
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" {
		return location
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}

// folder returns the folder with the checkouts of a repository. The readable part of its name is
// for people; the hash makes it unique.
func (s *Store) folder(r repository) string {
	name := strings.TrimSuffix(withoutSecrets(r.location), ".git")
	if _, rest, ok := strings.Cut(name, "://"); ok {
		name = rest
	}
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(name, "-"), "-.")
	if len(name) > 80 {
		name = name[len(name)-80:]
	}
	sum := sha256.Sum256([]byte(r.location))
	return filepath.Join(s.opts.Cache, strings.Trim(name, "-.")+"-"+hex.EncodeToString(sum[:6]))
}

// current returns the commit that is used if none is pinned; it may be empty.
func (s *Store) current(r repository) string {
	data, err := os.ReadFile(filepath.Join(s.folder(r), currentFile))
	commit := strings.TrimSpace(string(data))
	if err != nil || !isCommit(commit) {
		return ""
	}
	return commit
}

// fetch is a running fetch. Several callers may wait for it.
type fetch struct {
	done   chan struct{}
	commit string
	err    error
}

// Fetch fetches the repository of a source, at its newest commit unless another is pinned, and
// returns the commit. If a fetch is already running, it waits for that. ctx limits the waiting; the
// fetch itself has the Store's limit. A failure remains a Problem of the source until the next
// Fetch.
func (s *Store) Fetch(ctx context.Context, src Source) (commit string, err error) {
	repo, err := newRepository(src)
	if err != nil {
		return "", err
	}
	if !IsGit(src.Location) {
		return "", fmt.Errorf("%s is a folder; there is nothing to fetch", src.Location)
	}
	s.mu.Lock()
	f := s.fetches[repo]
	switch {
	case s.closed:
		s.mu.Unlock()
		return "", context.Canceled
	case f == nil:
		f = &fetch{done: make(chan struct{})}
		s.fetches[repo] = f
		s.running.Go(func() { s.run(repo, f) })
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.commit, f.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

var errNoGit = errors.New("the program git was not found in PATH; install git")

// run performs a fetch.
func (s *Store) run(repo repository, f *fetch) {
	ctx, cancel := context.WithTimeoutCause(s.ctx, s.opts.Limit, fmt.Errorf("it took longer than %s", s.opts.Limit))
	defer cancel()
	f.commit, f.err = s.checkout(ctx, repo)
	if f.err != nil {
		advice := "; check the URL, your access to it, and the network"
		var local *fs.PathError
		if errors.Is(f.err, errNoGit) || errors.As(f.err, &local) {
			advice = ""
		}
		f.err = fmt.Errorf("%s cannot be fetched: %w%s", withoutSecrets(repo.location), f.err, advice)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.fetches, repo)
	delete(s.failed, repo)
	if f.err != nil {
		s.failed[repo] = f.err
	}
	s.forgetLocked()
	close(f.done)
}

// checkout creates the folder of a commit, and makes the commit the current one unless it is
// pinned. The folder is renamed to its final name when it is complete.
func (s *Store) checkout(ctx context.Context, repo repository) (commit string, err error) {
	folder := s.folder(repo)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	s.sweep(folder)
	temp := filepath.Join(folder, tempPrefix+s.opts.NewID())
	if err := os.Mkdir(temp, 0o700); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }() // the next sweep tries again
	g := git{store: s, dir: temp, location: repo.location}
	if err := g.get(ctx, repo.commit); err != nil {
		return "", err
	}
	if commit, err = g.run(ctx, "rev-parse", "--verify", "HEAD"); err != nil {
		return "", err
	}
	if !isCommit(commit) || repo.commit != "" && commit != repo.commit {
		return "", fmt.Errorf("it has the commit %q instead of %q", commit, repo.commit)
	}
	if err := os.RemoveAll(filepath.Join(temp, ".git")); err != nil {
		return "", err
	}
	final := filepath.Join(folder, commit)
	if err := os.Rename(temp, final); err != nil && !isDir(final) { // another process may have been faster
		return "", err
	}
	if repo.commit != "" || s.current(repo) == commit {
		return commit, nil
	}
	return commit, safeio.Write(filepath.Join(folder, currentFile), []byte(commit+"\n"), 0o600)
}

// tempPrefix is the prefix of incomplete checkouts.
const tempPrefix = "tmp-"

// sweep removes the incomplete checkouts of killed processes.
func (s *Store) sweep(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), tempPrefix) && s.opts.Now().Sub(info.ModTime()) > s.opts.Limit+time.Hour {
			_ = os.RemoveAll(filepath.Join(folder, e.Name())) // the next sweep tries again
		}
	}
}

// git runs commands in one folder.
type git struct {
	store    *Store
	dir      string
	location string
}

// get puts the files of a commit, or of the newest if commit is empty, into the folder.
func (g git) get(ctx context.Context, commit string) error {
	if _, err := g.run(ctx, "init", "--quiet", "--template="); err != nil {
		return err
	}
	from := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules"}
	want := commit
	if want == "" {
		want = "HEAD"
	}
	_, err := g.run(ctx, append(from, "--depth=1", "--", g.location, want)...)
	if err != nil && commit != "" && ctx.Err() == nil {
		// Not every server provides a commit by its id alone.
		if _, all := g.run(ctx, append(from, "--", g.location, "+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")...); all == nil {
			_, err = g.run(ctx, "checkout", "--quiet", "--detach", commit)
			return err
		}
	}
	if err == nil {
		_, err = g.run(ctx, "checkout", "--quiet", "--detach", "FETCH_HEAD")
	}
	return err
}

// run runs git and returns its output. Nothing from the repository is executed, git does not prompt
// for a password, and the working directory of eca has no effect.
func (g git) run(ctx context.Context, args ...string) (string, error) {
	own := filepath.Join(g.dir, ".git")
	all := append([]string{
		"--git-dir=" + own, "--work-tree=" + g.dir,
		"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false",
		"-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.autocrlf=false", "-c", "advice.detachedHead=false",
	}, args...)
	env := []string{
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "GCM_INTERACTIVE=never", "GIT_LFS_SKIP_SMUDGE=1",
		"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_INDEX_FILE=" + filepath.Join(own, "index"), "LC_ALL=C",
		"GIT_OBJECT_DIRECTORY=" + filepath.Join(own, "objects"), "GIT_ALTERNATE_OBJECT_DIRECTORIES=",
	}
	if g.store.opts.Getenv("GIT_SSH_COMMAND") == "" {
		env = append(env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	stdout, stderr := proc.Head{Limit: maxOutput}, proc.Head{Limit: maxOutput}
	exit, err := g.store.opts.Children.Run(ctx, proc.Spec{
		Path: "git", Args: all, Dir: g.dir, Env: env, Stdout: &stdout, Stderr: &stderr,
	})
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil && !proc.Installed("git"):
		return "", errNoGit
	case err != nil:
		return "", fmt.Errorf("git cannot be started: %w", err)
	case exit.Code != 0:
		return "", errors.New(g.cause(stderr.String(), exit.Code))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// cause returns the last lines of git's error output, joined into one.
func (g git) cause(stderr string, code int) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(strings.TrimSpace(stderr), ""), g.location, withoutSecrets(g.location))
	if u, err := url.Parse(g.location); err == nil && u.User != nil {
		if password, ok := u.User.Password(); ok && password != "" {
			text = strings.ReplaceAll(text, password, "***")
		}
	}
	lines := strings.Split(text, "\n")
	if len(lines) > 4 {
		lines = lines[len(lines)-4:]
	}
	if text = strings.Join(strings.Fields(strings.Join(lines, " ")), " "); text == "" {
		return fmt.Sprintf("git exited with code %d", code)
	}
	return strings.TrimSuffix(text, ".")
}

// maxOutput is how much of git's output is kept, in bytes.
const maxOutput = 64 << 10

// RemoveReplaced removes the checkouts of a source's repository that are neither current nor in keep:
// those that updates have replaced.
func (s *Store) RemoveReplaced(src Source, keep []string) error {
	repo, err := newRepository(src)
	if err != nil {
		return err
	}
	folder := s.folder(repo)
	current := s.current(repo)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !isCommit(e.Name()) || e.Name() == current || e.Name() == src.Commit || slices.Contains(keep, e.Name()) {
			continue
		}
		errs = append(errs, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	return errors.Join(errs...)
}
