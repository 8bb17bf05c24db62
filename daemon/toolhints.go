package daemon

import (
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
)

// toolHint returns the part of a message that names the tool or server that an unknown name probably
// means, or "".
func toolHint(name string, known []string) string {
	if ours := toolOfOtherAssistant(name); ours != "" {
		return "; did you mean " + ours + "?"
	}
	if full := toolSpelledLike(name, known); full != "" {
		return "; did you mean " + full + "?"
	}
	return suggest.DidYouMean(name, namesOfSameForm(known, name))
}

// toolSpelledLike returns the full name of the tool that name probably means: a tool whose name has
// the same letters and digits, if a prefix mcp of name is ignored, or a tool whose name without the
// server is name. It returns "" if no tool or more than one matches.
func toolSpelledLike(name string, known []string) (only string) {
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s)
	}
	for _, full := range known {
		_, bare, ok := strings.Cut(full, "__")
		if !ok || bare != name && letters(full) != strings.TrimPrefix(letters(name), "mcp") && letters(full) != letters(name) {
			continue
		}
		if only != "" {
			return ""
		}
		only = full
	}
	return only
}

// toolOfOtherAssistant returns the name of our tool that does the same as a tool of another assistant
// with this name, or "".
func toolOfOtherAssistant(name string) string {
	ours := map[string][]string{
		"shell_command":  {"bash", "shell", "sh", "exec", "exec_command", "execute_command", "run_command", "run_shell_command", "run_in_terminal", "run_terminal_cmd"},
		"edit_file":      {"edit", "multiedit", "patch", "apply_patch", "replace", "str_replace_editor"},
		"write_file":     {"write", "create_file", "write_to_file"},
		"read_file":      {"read", "view", "read_many_files"},
		"directory_tree": {"ls", "list", "list_dir", "list_directory"},
		"grep":           {"search_file_content", "grep_search", "search_files"},
		"web_fetch":      {"webfetch"},
		"ask_user":       {"askuserquestion", "ask_followup_question"},
		"spawn_agent":    {"subagent"},
	}
	name = strings.ToLower(strings.TrimPrefix(name, tools.FullName(tools.Native, "")))
	for tool, names := range ours {
		if slices.Contains(names, name) {
			return tools.FullName(tools.Native, tool)
		}
	}
	return ""
}

// patternHint is the hint for a pattern in place of a tool's name.
const patternHint = "; give the whole name of a tool, or that of a server for all its tools, not a pattern"

// isPattern reports whether a name is written as a wildcard or a regular expression, so that no tool
// has it.
func isPattern(name string) bool {
	return strings.ContainsAny(name, `*?|()[]{}^$\`) || strings.Contains(name, ".+")
}

// globStar matches a * that shows that an entry of disabledTools was written as a glob: the * is at the
// beginning, or follows a character of a name.
var globStar = pattern.Lazy(`(^|[\w-])\*`)

// globToRegexp returns the regular expression that matches what a glob was meant to match.
func globToRegexp(glob string) string { return globStar().ReplaceAllString(glob, "$1.*") }

// namesOfSameForm returns the names that have the same form as name: with or without a server.
func namesOfSameForm(names []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return strings.Contains(n, "__") != strings.Contains(name, "__") })
}
