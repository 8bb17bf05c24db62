package extensions

import (
	"errors"
	"regexp"
	"strings"
)

// globPattern translates a glob with the syntax of Java: * stays within a path element; ** also
// matches slashes (so **/x needs a folder before x); ? is one character; [a-c] and [!a] are
// classes; {a,b} are alternatives; a backslash escapes the next character.
func globPattern(glob string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	inGroup := false
	for rest := glob; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch {
		case c == '\\':
			if rest == "" {
				return nil, errors.New("it ends with a backslash")
			}
			b.WriteString(regexp.QuoteMeta(rest[:1]))
			rest = rest[1:]
		case c == '*' && strings.HasPrefix(rest, "*"):
			b.WriteString(`.*`)
			rest = strings.TrimLeft(rest, "*")
		case c == '*':
			b.WriteString(`[^/]*`)
		case c == '?':
			b.WriteString(`[^/]`)
		case c == '[':
			class, after, err := globClass(rest)
			if err != nil {
				return nil, err
			}
			b.WriteString(class)
			rest = after
		case c == '{':
			if inGroup {
				return nil, errors.New("alternatives in braces cannot be nested")
			}
			inGroup = true
			b.WriteString(`(?:`)
		case c == '}' && inGroup:
			inGroup = false
			b.WriteString(`)`)
		case c == ',' && inGroup:
			b.WriteString(`|`)
		case c >= 0x80:
			b.WriteByte(c) // a byte of a multi-byte character
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	if inGroup {
		return nil, errors.New("a brace is not closed")
	}
	b.WriteString(`)\z`)
	return regexp.Compile(b.String())
}

// globClass translates the part after an opening bracket. No class matches a slash.
func globClass(rest string) (class, after string, err error) {
	end := strings.IndexByte(rest[min(1, len(rest)):], ']')
	if end < 0 {
		return "", "", errors.New("a bracket is not closed")
	}
	content, after := rest[:end+1], rest[end+2:]
	not := ""
	if c, ok := strings.CutPrefix(content, "!"); ok {
		not, content = "^/", c
	}
	if content == "" || strings.Contains(content, "/") {
		return "", "", errors.New("a class in brackets is empty or contains a slash")
	}
	quoted := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`, `&`, `\&`).Replace(content)
	return "[" + not + quoted + "]", after, nil
}
