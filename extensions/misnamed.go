package extensions

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Misnamed finds files and folders that look like extensions or configuration but are not read
// because of their names, and suggests the likely name. Other files are ignored.
func Misnamed(in Inputs) []config.Problem {
	var out []config.Problem
	for _, root := range in.Roots {
		out = append(out, misnamedIn(filepath.Join(root, ".eca"))...)
	}
	if in.ConfigHome != "" && !in.Pure {
		out = append(out, misnamedIn(in.ConfigHome)...)
	}
	return out
}

// misnamedIn checks one folder of the configuration.
func misnamedIn(dir string) (out []config.Problem) {
	say := func(path, format string, args ...any) {
		out = append(out, config.Problem{Origin: config.Origin{Source: path}, Cause: fmt.Sprintf(format, args...)})
	}
	entries, _ := os.ReadDir(dir) // a missing folder has no entries
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

// misnamedSkill returns the file that was probably meant as the SKILL.md of a folder that has none.
func misnamedSkill(dir string) string {
	files, _ := os.ReadDir(dir)
	meant := ""
	for _, f := range files {
		switch {
		case f.IsDir() || f.Name() == skillFile: // a subfolder may have the skills
			return ""
		case suggest.Nearest(f.Name(), []string{skillFile}) != "":
			meant = f.Name()
		}
	}
	return meant
}

// stem returns the part of a name before its first dot.
func stem(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return before
}
