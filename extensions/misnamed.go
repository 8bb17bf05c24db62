package extensions

import (
	"fmt"
	"maps"
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
	return append(out, misplaced(in)...)
}

// misplaced finds configuration files in places where eca reads none.
func misplaced(in Inputs) (out []config.Problem) {
	meant := map[string]string{}
	for _, root := range in.Roots {
		meant[filepath.Join(root, ".eca.json")] = filepath.Join(root, ".eca", configFile)
		meant[filepath.Join(root, ".eca", "AGENTS.md")] = filepath.Join(root, "AGENTS.md")
	}
	if in.ConfigHome != "" && !in.Pure {
		global := filepath.Join(in.ConfigHome, configFile)
		meant[in.ConfigHome+".json"] = global
		if home, err := os.UserHomeDir(); err == nil && !slices.Contains(in.Roots, home) {
			meant[filepath.Join(home, ".eca", configFile)] = global
			meant[filepath.Join(home, ".eca.json")] = global
		}
	}
	for _, path := range slices.Sorted(maps.Keys(meant)) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			out = append(out, config.Problem{Origin: config.Origin{Source: path}, Cause: "nothing reads this file; did you mean " + meant[path] + "?"})
		}
	}
	return out
}

// configFile is the name of a configuration file.
const configFile = "config.json"

// remedies returns advice by file name, for files that other programs read and eca does not. It says
// where eca reads the same content.
func remedies() map[string]string {
	return map[string]string{
		"hooks.json": "write its hooks below the key hooks in " + configFile, "mcp.json": "write its servers below the key mcpServers in " + configFile,
		".mcp.json": "write its servers below the key mcpServers in " + configFile, "settings.json": "write its settings in " + configFile,
		"rules.md": "did you mean " + filepath.Join(kindRule, "NAME.md") + "?",
	}
}

// misnamedIn checks one folder of the configuration.
func misnamedIn(dir string) (out []config.Problem) {
	say := func(path, format string, args ...any) {
		out = append(out, config.Problem{Origin: config.Origin{Source: path}, Cause: fmt.Sprintf(format, args...)})
	}
	entries, _ := os.ReadDir(dir) // a missing folder has no entries
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		file, folders := configFile, []string{kindAgent, kindSkill, kindRule, kindCommand}
		switch name := e.Name(); {
		case remedies()[name] != "" && !e.IsDir():
			say(path, "nothing reads this file; %s", remedies()[name])
		case !isRegularName(name):
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
			switch path := filepath.Join(dir, kind, f.Name()); {
			case f.IsDir() && kind == kindAgent && isRegularName(f.Name()) && containsMarkdown(path):
				say(path, "nothing reads this folder: agents are files in %s itself; move its files there", filepath.Join(dir, kind))
			case !f.IsDir() && isRegularName(f.Name()) && !isMarkdown(f.Name()):
				say(path, "nothing reads this file: %s are Markdown files; did you mean %s.md?", kind, stem(f.Name()))
			}
		}
	}
	skills, _ := os.ReadDir(filepath.Join(dir, kindSkill))
	for _, s := range skills {
		path := filepath.Join(dir, kindSkill, s.Name())
		switch {
		case !isRegularName(s.Name()):
		case !s.IsDir() && isMarkdown(s.Name()) && s.Name() != skillFile && !strings.EqualFold(s.Name(), "README.md"):
			say(path, "nothing reads this file: a skill is a folder; did you mean %s?", filepath.Join(kindSkill, stem(s.Name()), skillFile))
		case s.IsDir():
			if name := misnamedSkill(path); name != "" {
				say(filepath.Join(path, name), "nothing reads this file; did you mean %s?", skillFile)
			}
		}
	}
	return out
}

// containsMarkdown reports whether a folder contains a Markdown file.
func containsMarkdown(dir string) bool {
	files, _ := os.ReadDir(dir)
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return isRegularName(f.Name()) && isMarkdown(f.Name()) })
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
