package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// layer is one parsed source.
type layer struct {
	source  string
	content map[string]any
	lines   map[string]int // by joined path

	included map[string]string // by joined path; see include
}

// origin returns where a path stands in this layer.
func (l *layer) origin(path []string) Origin {
	return Origin{Source: l.source, Line: l.lines[join(path)], included: l.included[join(path)]}
}

// parse reads JSON with comments.
func parse(source string, data []byte) (*layer, *Problem) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	l := &layer{source: source, content: map[string]any{}, lines: map[string]int{}}
	if len(bytes.TrimSpace(data)) == 0 {
		return l, nil
	}
	root, err := hujson.Parse(withNewline(data))
	if err != nil {
		line, cause := splitPosition(err.Error())
		return nil, &Problem{Origin{Source: source, Line: line}, cause}
	}
	if isNull(&root) {
		return l, nil
	}
	obj, ok := root.Value.(*hujson.Object)
	if !ok {
		return nil, &Problem{Origin{Source: source, Line: 1}, "the configuration must be a JSON object"}
	}
	l.index(data, obj, nil)
	std := root.Clone()
	std.Standardize()
	if err := json.Unmarshal(std.Pack(), &l.content); err != nil {
		return nil, &Problem{Origin{Source: source}, err.Error()}
	}
	return l, nil
}

// withNewline returns a text whose last line is complete, as the parser wants comments to
// be.
func withNewline(text []byte) []byte {
	if bytes.HasSuffix(text, []byte("\n")) {
		return text
	}
	return append(slices.Clone(text), '\n')
}

// index records the line of every key.
func (l *layer) index(data []byte, obj *hujson.Object, path []string) {
	for _, m := range obj.Members {
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			continue
		}
		at := append(slices.Clone(path), name.String())
		// Where a provider's name is normalised, its lines follow it.
		if len(at) > 1 && at[0] == "providers" {
			at[1] = Kebab(at[1])
		}
		l.lines[join(at)] = 1 + bytes.Count(data[:min(m.Name.StartOffset, len(data))], []byte("\n"))
		if sub, ok := m.Value.Value.(*hujson.Object); ok {
			l.index(data, sub, at)
		}
	}
}

// splitPosition takes "hujson: line 3, column 5: cause" apart.
func splitPosition(msg string) (line int, cause string) {
	m := regexp.MustCompile(`^(?:hujson: )?line (\d+), column (\d+): (.*)$`).FindStringSubmatch(msg)
	if m == nil {
		return 0, msg
	}
	line, _ = strconv.Atoi(m[1])
	return line, fmt.Sprintf("column %s: %s", m[2], m[3])
}

// interpolate resolves dynamic strings in a layer's values. dir is where relative
// files are looked for.
func (b *builder) interpolate(v any, l *layer, dir string, path []string) any {
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			if len(path) == 0 && key == "mcpServers" {
				continue // see MCPServer
			}
			v[key] = b.interpolate(sub, l, dir, append(slices.Clone(path), key))
		}
		return v
	case []any:
		for i, sub := range v {
			v[i] = b.interpolate(sub, l, dir, path)
		}
		return v
	case string:
		out, err := expand(v, b.in.Getenv, dir, b.looked)
		if err != nil {
			b.problem(l.origin(path), "%s: %v", strings.Join(path, "."), err)
		}
		l.include(path, v, out)
		return out
	}
	return v
}

// maxIncluded bounds a ${file:...}.
const maxIncluded = 1 << 20

// Expand resolves ${env:NAME}, ${env:NAME:default} and ${file:path}. What cannot be
// resolved becomes empty and is reported; a missing variable is not an error.
func Expand(s string, getenv func(string) string, dir string) (string, error) {
	return expand(s, getenv, dir, func(string) {})
}

// expand is Expand that tells which files it looks for.
func expand(s string, getenv func(string) string, dir string, looked func(path string)) (string, error) {
	var errs []error
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			break
		}
		out.WriteString(s[:i])
		expr := s[i+2 : i+end]
		s = s[i+end+1:]
		kind, arg, ok := strings.Cut(expr, ":")
		if !ok {
			out.WriteString("${" + expr + "}")
			continue
		}
		switch kind {
		case "env":
			name, fallback, _ := strings.Cut(arg, ":")
			val := getenv(name)
			if val == "" {
				val = fallback
			}
			out.WriteString(val)
		case "file":
			text, err := includeFile(arg, dir, looked)
			if err != nil {
				errs = append(errs, err)
			}
			out.WriteString(text)
		case "netrc", "cmd", "classpath", "plugin":
			errs = append(errs, fmt.Errorf("${%s:...} is not supported yet; the value is empty", kind))
		default:
			out.WriteString("${" + expr + "}")
		}
	}
	out.WriteString(s)
	return out.String(), errors.Join(errs...)
}

func includeFile(path, dir string, looked func(path string)) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	looked(path)
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("${file:%s} cannot be read: %w", path, errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Size() > maxIncluded {
		return "", fmt.Errorf("${file:%s} is not a regular file of at most %d bytes", path, maxIncluded)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(data)), nil
}
