package permission

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// programs finds the executable files of commands that run without asking. It searches the folders of
// PATH that are outside the workspace and not writable by every user. It caches results, and each time
// checks with stat that the folders and files have not changed.
type programs struct {
	getenv func(string) string // nil: programs are not searched for

	mu      sync.Mutex // guards the fields below; not held while files are read
	known   map[string]program
	folders map[string]*folder
	path    *searchPath // the last value of PATH
}

// searchPath is a value of PATH.
type searchPath struct {
	value string
	dirs  []string                // each of them once
	found map[string]foundProgram // of programs, by name; guarded by programs.mu
}

// foundProgram is where a program was found.
type foundProgram struct {
	file  string
	until time.Time
}

// foundProgramTTL is how long a result is used without searching the folders of PATH again. During that
// time, a program that appears in an earlier folder is not found. This is safe, because stat must show
// that the file is still the one that was examined.
const foundProgramTTL = 2 * time.Second

// program is the cached result of examining a file.
type program struct {
	state       fileState
	real        string // resolved path
	interpreter string // of a script
	why         string // why it must not run without asking; empty if it may
}

func newPrograms(getenv func(string) string) *programs {
	return &programs{getenv: getenv, known: map[string]program{}, folders: map[string]*folder{}}
}

// resolve finds the programs of a command. If one of them must not run without asking, why is the reason.
func (s *programs) resolve(printed *tools.Printed, inside func(string) bool) (why string) {
	if s.getenv == nil || runtime.GOOS == "windows" {
		return ""
	}
	in := s.search(s.getenv("PATH"), inside)
	printed.Programs, printed.Execute = []tools.NamedProgram{}, []string{} // not nil, even if all commands are builtins
	var used []string
	add := func(name string, needed bool) string {
		file, found := in.find(name)
		switch {
		case file == "" && needed && isBuiltin(name), file == "" && !needed:
			return ""
		case file == "":
			return "there is no program " + name + " in the folders of PATH that only you can write to, outside the workspace"
		case found.why != "" && (isBuiltin(name) || !needed):
			return ""
		case found.why != "":
			return found.why
		}
		if !filepath.IsAbs(name) && !slices.ContainsFunc(printed.Programs, func(n tools.NamedProgram) bool { return n.Name == name }) && !isBuiltin(name) {
			printed.Programs = append(printed.Programs, tools.NamedProgram{Name: name, Path: file})
		}
		for _, path := range []string{found.real, found.interpreter} {
			if path != "" && !slices.Contains(printed.Execute, path) {
				printed.Execute = append(printed.Execute, path)
			}
		}
		used = append(used, filepath.Dir(file))
		return ""
	}
	for _, c := range printed.Program.Commands {
		if c.Name == "<" || c.Name == "for" || c.Name == "" { // a redirection, a loop, or an assignment
			continue
		}
		if why := add(c.Name, true); why != "" {
			return why
		}
		for _, other := range startedPrograms(c.Name) {
			if why := add(other, false); why != "" {
				return why
			}
		}
	}
	var path []string
	for _, dir := range in.dirs {
		if slices.Contains(used, dir) {
			path = append(path, dir)
		}
	}
	printed.Path = strings.Join(path, string(filepath.ListSeparator))
	return ""
}

// search starts a search in the folders of a value of PATH.
func (s *programs) search(path string, inside func(string) bool) *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path == nil || s.path.value != path {
		s.path = &searchPath{value: path, found: map[string]foundProgram{}}
		for _, dir := range filepath.SplitList(path) {
			if !slices.Contains(s.path.dirs, dir) {
				s.path.dirs = append(s.path.dirs, dir)
			}
		}
	}
	return &search{programs: s, searchPath: s.path, searched: make([]searchedFolder, len(s.path.dirs)), inside: inside}
}

// isBuiltin reports whether bash has a builtin of this name. Wrappers (env, xargs) run the program of
// that name instead.
func isBuiltin(name string) bool {
	switch name {
	case "echo", "printf", "true", "false", ":", "cd", "pwd", "test", "[", "[[", "read", "type", "command", "builtin", "eval", "exit", "set", "break", "continue":
		return true
	}
	return false
}

// startedPrograms returns the programs that a read-only program starts.
func startedPrograms(name string) []string {
	switch name {
	case "xargs":
		return []string{"echo"}
	case "egrep", "fgrep":
		return []string{"grep"}
	case "zcat":
		return []string{"gzip"}
	case "git":
		return []string{"/usr/lib/git-core/git", "/usr/libexec/git-core/git"}
	}
	return nil
}

// folder is the cached state of a folder of PATH.
type folder struct {
	state   fileState
	trusted bool            // programs in it may be run
	missing map[string]bool // names that are not in it
}

// maxCacheEntries bounds the caches, because models may try any number of names.
const maxCacheEntries = 4096

// addToCache adds an entry to a cache. It clears a full cache first.
func addToCache[V any](known map[string]V, name string, value V) {
	if len(known) >= maxCacheEntries {
		clear(known)
	}
	known[name] = value
}

// stable reports whether the last change of a file is old enough that another change certainly alters
// the modification time.
func (s fileState) stable() bool { return time.Since(time.Unix(0, s.modified)) > time.Minute }

// fileState identifies the state of a file: if the file changes, its fileState changes too.
type fileState struct {
	device, number uint64
	modified       int64 // nanoseconds since 1970
	size           int64
	mode           fs.FileMode
}

// search looks for the programs of one command.
type search struct {
	*programs
	*searchPath
	searched []searchedFolder // by index of the folder
	inside   func(string) bool
}

// searchedFolder is the state of a folder at the time of the search.
type searchedFolder struct {
	done   bool
	folder *folder // nil if it cannot be used
}

// folder returns the state of folder i of PATH.
func (s *search) folder(i int) *folder {
	f := &s.searched[i]
	if !f.done {
		f.done, f.folder = true, s.readFolder(s.dirs[i])
	}
	return f.folder
}

// readFolder returns the state of a folder; nil if it cannot be used. A cached state is valid while stat
// shows the same folder.
func (s *search) readFolder(dir string) *folder {
	if !filepath.IsAbs(dir) {
		return nil
	}
	state, err := stateOf(dir)
	if err != nil || !state.mode.IsDir() {
		return nil
	}
	s.mu.Lock()
	f, known := s.folders[dir]
	s.mu.Unlock()
	if known && f.state == state {
		return f
	}
	f = &folder{state: state, trusted: trustedFolder(dir, state, s.inside), missing: map[string]bool{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.folders[dir] = f
	return f
}

// trustedFolder reports whether programs in a folder of PATH may be run.
func trustedFolder(dir string, state fileState, inside func(string) bool) bool {
	const others = 0o002
	return filepath.IsAbs(dir) && state.mode.IsDir() && state.mode.Perm()&others == 0 && !inside(dir)
}

// find returns the file of a program and the result of examining it. file is empty if there is no such
// program.
func (s *search) find(name string) (file string, p program) {
	if strings.Contains(name, "/") {
		if state, err := stateOf(name); filepath.IsAbs(name) && err == nil {
			return name, s.examineCached(name, state)
		}
		return "", program{}
	}
	s.mu.Lock()
	at := s.found[name]
	examined, known := s.known[at.file]
	s.mu.Unlock()
	now := time.Now()
	if known && now.Before(at.until) {
		if state, err := stateOf(at.file); err == nil && state == examined.state {
			return at.file, examined
		}
	}
	for i := range s.dirs {
		if file, p = s.findIn(i, name); file != "" {
			s.mu.Lock()
			addToCache(s.found, name, foundProgram{file, now.Add(foundProgramTTL)})
			s.mu.Unlock()
			return file, p
		}
	}
	return "", program{}
}

// findIn is find for folder i of PATH.
func (s *search) findIn(i int, name string) (file string, p program) {
	f := s.folder(i)
	if f == nil || !f.trusted || s.lacks(f, name) {
		return "", program{}
	}
	file = filepath.Join(s.dirs[i], name)
	state, err := stateOf(file)
	if isExecutable(state, err) {
		return file, s.examineCached(file, state)
	}
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) && f.state.stable() {
		s.mu.Lock()
		addToCache(f.missing, name, true)
		s.mu.Unlock()
	}
	return "", program{}
}

// lacks reports whether a name is known to be missing from a folder.
func (s *search) lacks(f *folder, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f.missing[name]
}

// isExecutable reports whether a file is a program.
func isExecutable(state fileState, err error) bool {
	const anybody = 0o111
	return err == nil && state.mode.IsRegular() && state.mode&anybody != 0
}

// examineCached examines a file. A cached result is valid while stat shows the same file.
func (s *search) examineCached(file string, state fileState) program {
	s.mu.Lock()
	p, known := s.known[file]
	s.mu.Unlock()
	if known && p.state == state {
		return p
	}
	p = program{state: state}
	p.real, p.interpreter, p.why = examine(file, state, s.inside)
	if state.stable() { // otherwise it may still be written
		s.mu.Lock()
		defer s.mu.Unlock()
		addToCache(s.known, file, p)
	}
	return p
}

// examine returns the resolved path of a program and the interpreter of a script. If it may not run
// without a question, why is the reason.
func examine(file string, state fileState, inside func(string) bool) (real, interpreter, why string) {
	real, err := filepath.EvalSymlinks(file)
	const shared = 0o022
	switch {
	case err != nil:
		return "", "", "the program " + file + " cannot be examined: " + err.Error()
	case inside(real):
		return "", "", "the program " + file + " is in the workspace"
	case state.mode.Perm()&shared != 0:
		return "", "", "other users may change the program " + file
	}
	f, err := os.Open(real)
	if err != nil {
		return real, "", "" // not readable, so it is not a script
	}
	defer f.Close()
	start := make([]byte, 128) //nolint:mnd // bytes of the first line
	n, _ := f.Read(start)
	first, ok := bytes.CutPrefix(start[:n], []byte("#!"))
	if !ok {
		return real, "", ""
	}
	// Scripts of the system (egrep) are accepted. A script elsewhere may choose between versions of a
	// program, so eca does not know which one runs.
	line, _, _ := bytes.Cut(first, []byte("\n"))
	fields := strings.Fields(string(line))
	if !slices.Contains([]string{"/bin", "/usr/bin"}, filepath.Dir(real)) || len(fields) == 0 {
		return "", "", "the program " + file + " is a script that starts others"
	}
	if interpreter, err = filepath.EvalSymlinks(fields[0]); err != nil || inside(interpreter) {
		return "", "", "the interpreter of " + file + " cannot be used"
	}
	return real, interpreter, ""
}
