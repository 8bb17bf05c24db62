package runtime

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// lookup answers questions about the machine that a target depends on.
type lookup struct {
	exists func(path string) bool    // relative to the current directory
	inPath func(program string) bool // in PATH
	dir    string                    // folder of the manifest
}

// hostEnv returns a lookup on this machine.
func hostEnv(dir, path string) lookup {
	return lookup{
		exists: func(path string) bool { _, err := os.Stat(path); return err == nil },
		inPath: func(program string) bool {
			for _, dir := range filepath.SplitList(path) {
				if isFile(filepath.Join(dir, program)) || isFile(filepath.Join(dir, program+".exe")) {
					return true
				}
			}
			return false
		},
		dir: dir,
	}
}

// targetWord matches a word of a command line without shell syntax.
var targetWord = pattern.Lazy(`(^|\s)([A-Za-z0-9_./\\-]+)`)

// resolve makes a command line independent of the current directory. Files that exist in the
// manifest's folder but not in the current directory get their full path. python becomes python3 if
// only python3 is installed. Words with quotes or other shell syntax stay unchanged.
func (p lookup) resolve(target string) (resolved string, notes []string) {
	first := true
	resolved = targetWord().ReplaceAllStringFunc(target, func(match string) string {
		name := strings.TrimLeft(match, " \t\r\n")
		space := match[:len(match)-len(name)]
		program := first
		first = false
		if program && name == "python" && !p.inPath("python") && p.inPath("python3") {
			notes = append(notes, "python is not installed; using python3")
			return space + "python3"
		}
		if strings.HasPrefix(name, "-") || filepath.IsAbs(name) || (program && !strings.ContainsAny(name, `/\`)) {
			return match
		}
		manifestFile := filepath.Join(p.dir, name)
		if !strings.Contains(name, ".") && !strings.ContainsAny(name, `/\`) || !isFile(manifestFile) {
			return match
		}
		if p.exists(name) {
			if abs, err := filepath.Abs(name); err == nil && abs != manifestFile {
				notes = append(notes, name+" is in the current directory and beside the manifest; the one in the current directory is used")
			}
			return match
		}
		notes = append(notes, name+" is not in the current directory; the one beside the manifest is used")
		return space + shellQuote(manifestFile)
	})
	return resolved, notes
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func shellQuote(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./\\-:") == "" {
		return path
	}
	if filepath.Separator == '\\' {
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
