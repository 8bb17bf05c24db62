package permission

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/workspace"
)

// gitAnswers runs git to find the repository of a folder and to parse configurations, and caches the
// answers. git runs in the read-only sandbox, with a time limit, while no lock is held. The keys of the
// cache are the bytes that were read from files, so that an answer is valid while these are the same.
type gitAnswers struct {
	children    *proc.Pool
	inWorkspace func(path string) bool
	getenv      func(string) string // nil: git runs with our PATH and environment
	timeout     time.Duration

	mu           sync.Mutex
	settings     map[digest]settingsAnswer   // by text of the configuration
	repositories map[digest]repositoryAnswer // by folder and content of the repository's files
}

const (
	gitTimeout = 5 * time.Second
	maxAnswers = 100
)

// digest is the hash of everything that an answer depends on.
type digest = [sha256.Size]byte

func newGitAnswers(o Options) *gitAnswers {
	return &gitAnswers{
		children: o.Children, inWorkspace: func(path string) bool { return o.Contains(workspace.Resolve(path)) }, getenv: o.Getenv, timeout: gitTimeout,
		settings: map[digest]settingsAnswer{}, repositories: map[digest]repositoryAnswer{},
	}
}

// setting is a line of a configuration: section.name.key=value, with section and key in lower case.
type setting struct{ section, name, key, value string }

type settingsAnswer struct {
	list []setting
	err  error
}

// parseConfig parses a configuration.
func (g *gitAnswers) parseConfig(text []byte) ([]setting, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, nil
	}
	key := sha256.Sum256(text)
	g.mu.Lock()
	a, known := g.settings[key]
	g.mu.Unlock()
	if known {
		return a.list, a.err
	}
	out, err := g.ask(string(filepath.Separator), bytes.NewReader(text), "config", "--file", "-", "--list", "--null", "--no-includes")
	if errors.Is(err, errNoAnswer) {
		return nil, err
	}
	a = settingsAnswer{parseSettings(out), err}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.settings) == maxAnswers {
		clear(g.settings)
	}
	g.settings[key] = a
	return a.list, a.err
}

// parseSettings parses the output of git config --list --null.
func parseSettings(out string) []setting {
	var list []setting
	for entry := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		full, value, _ := strings.Cut(entry, "\n")
		first, last := strings.IndexByte(full, '.'), strings.LastIndexByte(full, '.')
		if first < 0 {
			continue
		}
		s := setting{section: full[:first], key: full[last+1:], value: value}
		if first < last {
			s.name = full[first+1 : last]
		}
		list = append(list, s)
	}
	return list
}

// repositoryAnswer is the repository of a folder according to git; empty if there is no repository.
type repositoryAnswer struct {
	repo, common, top string // git folder, shared git folder, top of the work tree; top is empty in a bare repository
	err               error
}

// repository asks git which repository a folder belongs to. content is the content of all files on which
// the answer depends.
func (g *gitAnswers) repository(dir, content string) repositoryAnswer {
	key := sha256.Sum256([]byte(dir + "\x00" + content))
	g.mu.Lock()
	a, known := g.repositories[key]
	g.mu.Unlock()
	if known {
		return a
	}
	out, err := g.ask(dir, nil, "rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-toplevel")
	if errors.Is(err, errNoAnswer) {
		return repositoryAnswer{err: err}
	}
	// Outside a repository, git fails and prints nothing. In a bare repository, it prints no top.
	if lines := strings.Split(out, "\n"); len(lines) >= 3 {
		a = repositoryAnswer{repo: lines[0], common: joinPath(dir, lines[1])}
		if err == nil {
			a.top = lines[2]
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.repositories) == maxAnswers {
		clear(g.repositories)
	}
	g.repositories[key] = a
	return a
}

// errNoAnswer means that git gave no answer. It may answer another time, so this is not cached.
var errNoAnswer = errors.New("git does not answer")

// ask runs git and returns its output. If git fails, the error is its message.
func (g *gitAnswers) ask(dir string, stdin *bytes.Reader, args ...string) (string, error) {
	path, err := g.program()
	if err != nil {
		return "", err
	}
	getenv := g.getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	spec := proc.Spec{
		Path: path, Args: args, Dir: dir, Stdout: &stdout, Stderr: &stderr,
		Sandbox: sandbox.Policy{Level: sandbox.ReadOnly}, Env: cmdline.GitEnv(getenv, cmdline.HarmlessGit()...),
	}
	if stdin != nil {
		spec.Stdin = stdin
	}
	exit, err := g.children.Run(ctx, spec)
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", errNoAnswer, err)
	case exit.Killed || exit.Code < 0:
		return "", fmt.Errorf("%w within %s", errNoAnswer, g.timeout)
	case exit.Code != 0:
		reason, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
		return stdout.String(), errors.New("git says: " + reason)
	}
	return stdout.String(), nil
}

// program returns the git that PATH finds outside the workspace.
func (g *gitAnswers) program() (string, error) {
	name := "git"
	if g.getenv == nil {
		return name, nil
	}
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	for _, dir := range filepath.SplitList(g.getenv("PATH")) {
		if state, err := stateOf(dir); err != nil || !trustedFolder(dir, state, g.inWorkspace) {
			continue
		}
		path := filepath.Join(dir, name)
		if state, err := stateOf(path); err == nil && state.mode.IsRegular() && !g.inWorkspace(path) && (runtime.GOOS == "windows" || isExecutable(state, err)) {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: it is not in PATH, or only in the workspace", errNoAnswer)
}
