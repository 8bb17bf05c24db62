package extensions

import (
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

var (
	frontmatterKey   = pattern.Lazy(`^[a-z][A-Za-z_-]*\s*[:=](\s|$)`)
	strangeDelimiter = pattern.Lazy(`^(-{2,}|\+{3,}|—+|–+)`)
)

// unreadFrontmatter finds what was probably meant as frontmatter in a text without it: its first line
// of dashes is missing, different or not at the top. Code blocks are not searched.
func unreadFrontmatter(text string) *fault {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	first := slices.IndexFunc(lines, func(l string) bool { return l != "" })
	if first < 0 {
		return nil
	}
	key := frontmatterKey()
	keyFollows := func(at int) bool { return at+1 < len(lines) && key.MatchString(lines[at+1]) }
	switch top := lines[first]; {
	case keyFollows(first) && strangeDelimiter().MatchString(top):
		return faultf(first+1, "this line does not begin frontmatter; a line of exactly three dashes does, and YAML follows")
	case key.MatchString(top) && slices.Contains(lines[first:first+slices.Index(append(lines[first:len(lines):len(lines)], ""), "")], delimiter):
		return faultf(first+1, "the frontmatter must begin with a line of three dashes")
	}
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "```"):
			return nil
		case line == delimiter && keyFollows(i) && slices.Contains(lines[i+1:], delimiter):
			return faultf(i+1, "this is not read as frontmatter, because there is text before it; move that text below")
		}
	}
	return nil
}
