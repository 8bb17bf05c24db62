package ignore

import (
	"bytes"
	"strings"
)

// pattern is one line of an ignore file.
type pattern struct {
	negate   bool
	dirOnly  bool
	nameOnly bool // matches a name at any depth; otherwise a path relative to the pattern's folder
	shape    shape
	text     string // for shapes other than glob
	path     []segment
}

// shape is the form of a pattern: most are simple, which matters for many files.
type shape int

const (
	glob    shape = iota
	literal       // text
	suffix        // *text
	prefix        // text*
)

func (p *pattern) match(name string) bool {
	switch p.shape {
	case literal:
		return name == p.text
	case suffix:
		return strings.HasSuffix(name, p.text)
	case prefix:
		return strings.HasPrefix(name, p.text)
	}
	return matchPath(p.path, name)
}

// parse parses an ignore file. fold is for work trees on file systems that ignore case.
func parse(data []byte, fold bool) []pattern {
	var out []pattern
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		if p, ok := parseLine(line, fold); ok {
			out = append(out, p)
		}
	}
	return out
}

func parseLine(line string, fold bool) (pattern, bool) {
	if strings.HasPrefix(line, "#") {
		return pattern{}, false
	}
	line = trimTrailingSpace(line)
	var p pattern
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		p.negate, line = true, rest
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		p.dirOnly, line = true, rest
	}
	if line == "" {
		return pattern{}, false
	}
	p.nameOnly = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if fold {
		line = lower(line)
	}
	plain := func(s string) bool { return !strings.ContainsAny(s, `*?[\`) }
	switch {
	case plain(line):
		p.shape, p.text = literal, line
	case p.nameOnly && line[0] == '*' && plain(line[1:]):
		p.shape, p.text = suffix, line[1:]
	case p.nameOnly && strings.HasSuffix(line, "*") && plain(line[:len(line)-1]):
		p.shape, p.text = prefix, line[:len(line)-1]
	default:
		path, ok := compile(line)
		if !ok {
			return pattern{}, false
		}
		p.path = path
	}
	return p, true
}

// trimTrailingSpace removes unescaped spaces at the end of a line.
func trimTrailingSpace(s string) string {
	end := len(s)
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if end == len(s) {
				end = i
			}
			continue
		case '\\':
			i++
		}
		end = len(s)
	}
	return s[:end]
}

// lower converts ASCII letters to lower case, as git does.
func lower(s string) string {
	for i := 0; i < len(s); i++ {
		if 'A' <= s[i] && s[i] <= 'Z' {
			b := []byte(s)
			for j := i; j < len(b); j++ {
				if 'A' <= b[j] && b[j] <= 'Z' {
					b[j] += 'a' - 'A'
				}
			}
			return string(b)
		}
	}
	return s
}
