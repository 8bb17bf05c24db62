package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Misnamed names files and folders that are probably meant as extensions or configuration and that
// nothing reads because of how they are called, with the likely name. Other files are the user's.
func Misnamed(in Inputs) []Problem {
	var out []Problem
	for _, root := range in.Roots {
		out = append(out, misnamedIn(filepath.Join(root, ".eca"))...)
	}
	if in.ConfigHome != "" && !in.Pure {
		out = append(out, misnamedIn(in.ConfigHome)...)
	}
	return out
}

// misnamedIn looks at one folder of the configuration.
func misnamedIn(dir string) (out []Problem) {
	say := func(path, format string, args ...any) {
		out = append(out, Problem{Path: path, Cause: fmt.Sprintf(format, args...)})
	}
	entries, _ := os.ReadDir(dir) // without it there is nothing to say
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		file, folders := "config.json", []string{kindAgent, kindSkill, kindRule, kindCommand}
		switch name := e.Name(); {
		case !plain(name):
		case e.IsDir():
			if meant := suggest.Nearest(name, folders); meant != "" && !slices.Contains(folders, name) {
				say(path, "nothing reads this folder; did you mean %s?", meant)
			}
		case name != file && (suggest.Nearest(name, []string{file}) != "" || strings.EqualFold(stem(name), "config")):
			say(path, "nothing reads this file; did you mean %s?", file)
		}
	}
	for _, kind := range []string{kindAgent, kindCommand} {
		files, _ := os.ReadDir(filepath.Join(dir, kind))
		for _, f := range files {
			if !f.IsDir() && plain(f.Name()) && !markdown(f.Name()) {
				say(filepath.Join(dir, kind, f.Name()), "nothing reads this file: %s are Markdown files; did you mean %s.md?", kind, stem(f.Name()))
			}
		}
	}
	skills, _ := os.ReadDir(filepath.Join(dir, kindSkill))
	for _, s := range skills {
		path := filepath.Join(dir, kindSkill, s.Name())
		switch {
		case !plain(s.Name()):
		case !s.IsDir() && markdown(s.Name()) && s.Name() != skillFile && !strings.EqualFold(s.Name(), "README.md"):
			say(path, "nothing reads this file: a skill is a folder; did you mean %s?", filepath.Join(kindSkill, stem(s.Name()), skillFile))
		case s.IsDir():
			if name := misnamedSkill(path); name != "" {
				say(filepath.Join(path, name), "nothing reads this file; did you mean %s?", skillFile)
			}
		}
	}
	return out
}

// misnamedSkill returns the file of a folder without a skill that is probably meant as one.
func misnamedSkill(dir string) string {
	files, _ := os.ReadDir(dir)
	meant := ""
	for _, f := range files {
		switch {
		case f.IsDir() || f.Name() == skillFile: // which may have the skills
			return ""
		case suggest.Nearest(f.Name(), []string{skillFile}) != "":
			meant = f.Name()
		}
	}
	return meant
}

// stem is a name up to its first dot.
func stem(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return before
}
