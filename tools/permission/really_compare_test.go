//go:build unix

package permission

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// loggers makes a folder with a program for each program of the system. It logs its name in a file
// of the folder and then runs the program of the system. where maps names to the paths of those.
func loggers(t *testing.T) (bin string, where map[string]string) {
	t.Helper()
	bin = t.TempDir()
	logger := filepath.Join(bin, ".logger")
	script := "#!/bin/bash\nprintf '%s\\n' \"${0##*/}\" >>'" + filepath.Join(bin, logName) + "'\nfor d in " + strings.Join(systemDirs(), " ") + "; do [ -x \"$d/${0##*/}\" ] && exec \"$d/${0##*/}\" \"$@\"; done\nexit 127\n"
	if err := os.WriteFile(logger, []byte(script), 0o755); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	where = map[string]string{}
	for _, dir := range systemDirs() {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if where[e.Name()] == "" && os.Symlink(logger, filepath.Join(bin, e.Name())) == nil {
				where[e.Name()] = filepath.Join(dir, e.Name())
			}
		}
	}
	return bin, where
}

const logName = ".log"

// runCompared runs programs one after another without a sandbox, with loggers in PATH, and compares
// the workspace before and after each. It detects connections only if bash itself opens them to the
// canary, and programs that are started by their whole path only if they change the workspace.
func (w *world) runCompared(t failer, bin string, where map[string]string, texts []string) []observation {
	log := filepath.Join(bin, logName)
	out := make([]observation, len(texts))
	for i, text := range texts {
		before := snapshot(t, w.dir)
		_ = os.Remove(log)
		var trouble bytes.Buffer
		env := slices.Concat(w.env, harmlessGit(), []string{"PATH=" + bin})
		exit, err := proc.Run(context.Background(), proc.Spec{Path: "/usr/bin/env", Args: slices.Concat([]string{"-i"}, env, []string{"/bin/bash", "-c", text}), Dir: w.dir, Stderr: &trouble})
		if err != nil {
			t.Fatal(err, exit)
		}
		names, _ := os.ReadFile(log)
		for _, name := range strings.Fields(string(names)) {
			out[i].ran = append(out[i].ran, where[name])
		}
		if strings.Contains(text, "/dev/tcp/") && !strings.Contains(trouble.String(), "refused") {
			out[i].opened = append(out[i].opened, text)
		}
		after := snapshot(t, w.dir)
		for path, was := range before {
			if is := after[path]; is != was && filepath.Base(path) != "pwned" {
				out[i].changed = append(out[i].changed, fmt.Sprintf("%s: %s -> %s", path, was, is))
			}
		}
		for path := range after {
			if before[path] == "" {
				out[i].changed = append(out[i].changed, path+" is new")
				if filepath.Base(path) == "pwned" {
					out[i].ran = append(out[i].ran, filepath.Join(filepath.Dir(path), "a trap"))
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		slices.Sort(out[i].changed)
	}
	return out
}

// snapshot returns, for every file, values that change if the file is written.
func snapshot(t failer, dir string) map[string]string {
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if d.IsDir() { // lock files come and go
			out[path] = info.Mode().String()
			return nil
		}
		out[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
