package permission

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// programs finds the files of the programs that commands run unasked: those that PATH finds
// outside of the workspace, where only the user and the system may put some.
type programs struct {
	getenv func(string) string // nil: nothing is looked up

	mu    sync.Mutex // guards what follows
	path  string     // whose folders these are
	dirs  []string
	known map[string]program // by path
}

// program is what a file was when it was looked at.
type program struct {
	info        os.FileInfo
	real        string
	interpreter string
	why         string // why it is not run unasked
}

func newPrograms(getenv func(string) string) *programs {
	return &programs{getenv: getenv, known: map[string]program{}}
}

// resolve finds the programs of a command. why says which cannot be run unasked.
func (s *programs) resolve(printed *tools.Printed, inside func(string) bool) (why string) {
	if s.getenv == nil || runtime.GOOS == "windows" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if path := s.getenv("PATH"); path != s.path || s.dirs == nil {
		s.path, s.dirs = path, trustedDirs(path, inside)
	}
	printed.Programs, printed.Execute = []tools.NamedProgram{}, []string{} // also if bash itself has all of them
	var used []string
	add := func(name string, needed bool) string {
		file, found := s.find(name, inside)
		switch {
		case file == "" && needed && builtin(name), file == "" && !needed:
			return ""
		case file == "":
			return "there is no program " + name + " in the folders of PATH that only you can write to, outside of the workspace"
		case found.why != "" && (builtin(name) || !needed):
			return ""
		case found.why != "":
			return found.why
		}
		if !filepath.IsAbs(name) && !slices.ContainsFunc(printed.Programs, func(n tools.NamedProgram) bool { return n.Name == name }) && !builtin(name) {
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
		if c.Name == "<" {
			continue
		}
		if why := add(c.Name, true); why != "" {
			return why
		}
		for _, other := range starts(c.Name) {
			if why := add(other, false); why != "" {
				return why
			}
		}
	}
	var path []string
	for _, dir := range s.dirs {
		if slices.Contains(used, dir) {
			path = append(path, dir)
		}
	}
	printed.Path = strings.Join(path, string(filepath.ListSeparator))
	return ""
}

// builtin tells commands that bash itself has; wrappers run the programs of these names.
func builtin(name string) bool {
	switch name {
	case "echo", "printf", "true", "false", ":", "cd", "pwd", "test", "[", "type", "command", "builtin", "eval", "exit":
		return true
	}
	return false
}

// starts names what programs that only read start themselves.
func starts(name string) []string {
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

// trustedDirs are the folders of PATH that programs are looked for in.
func trustedDirs(path string, inside func(string) bool) []string {
	dirs := []string{}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) || inside(dir) || slices.Contains(dirs, dir) {
			continue
		}
		const others = 0o002
		if info, err := os.Stat(dir); err == nil && info.IsDir() && info.Mode().Perm()&others == 0 {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// find returns the file of a program, and what is known of it.
func (s *programs) find(name string, inside func(string) bool) (file string, p program) {
	if strings.Contains(name, "/") {
		if info, err := os.Stat(name); filepath.IsAbs(name) && err == nil {
			return name, s.look(name, info, inside)
		}
		return "", program{}
	}
	const executable = 0o111
	for _, dir := range s.dirs {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Mode()&executable != 0 {
			return file, s.look(file, info, inside)
		}
	}
	return "", program{}
}

// look says what a file is. What was said before counts while it is the same file.
func (s *programs) look(file string, info os.FileInfo, inside func(string) bool) program {
	if p, ok := s.known[file]; ok && os.SameFile(p.info, info) && p.info.ModTime().Equal(info.ModTime()) && p.info.Size() == info.Size() && p.info.Mode() == info.Mode() {
		return p
	}
	p := program{info: info}
	p.real, p.interpreter, p.why = examine(file, info, inside)
	if time.Since(info.ModTime()) > time.Minute { // else it may be written still
		s.known[file] = p
	}
	return p
}

// examine says where a program is, and why it is none to be run unasked.
func examine(file string, info os.FileInfo, inside func(string) bool) (real, interpreter, why string) {
	real, err := filepath.EvalSymlinks(file)
	const shared = 0o022
	switch {
	case err != nil:
		return "", "", "the program " + file + " cannot be looked at: " + err.Error()
	case inside(real):
		return "", "", "the program " + file + " is in the workspace"
	case info.Mode().Perm()&shared != 0:
		return "", "", "others may change the program " + file
	}
	f, err := os.Open(real)
	if err != nil {
		return real, "", "" // it can be run, not read: no script
	}
	defer f.Close()
	start := make([]byte, 128) //nolint:mnd // of the first line
	n, _ := f.Read(start)
	first, ok := bytes.CutPrefix(start[:n], []byte("#!"))
	if !ok {
		return real, "", ""
	}
	// A script of the system may do what its name says by others (egrep); elsewhere it is one
	// that chooses a version, and what it then runs is not known.
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
