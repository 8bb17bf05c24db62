package extensions

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// maxFrontmatter is the limit of the YAML frontmatter, in bytes.
const maxFrontmatter = 32 << 10

// delimiter is the line before and after the frontmatter.
const delimiter = "---"

// maxNesting is how deep the frontmatter may be nested.
const maxNesting = 32

// document is a text with optional YAML frontmatter.
type document struct {
	meta  map[string]any // nil without frontmatter
	lines map[string]int // line numbers of the keys
	body  string         // without surrounding white space

	unread *fault // the text seems to have frontmatter that is not read as such
}

// fault is an error in a file.
type fault struct {
	line  int
	cause string
}

func (f *fault) Error() string { return f.cause }

func faultf(line int, format string, args ...any) *fault {
	return &fault{line, fmt.Sprintf(format, args...)}
}

// parseDocument splits a text into frontmatter and body. The frontmatter is between two lines of
// three dashes, the first of which is the first line of the text that is not blank.
func parseDocument(text string) (document, *fault) {
	if safeio.IsUTF16([]byte(text[:min(2, len(text))])) {
		return document{}, faultf(0, "the text is UTF-16; save it as UTF-8")
	}
	if !utf8.ValidString(text) {
		return document{}, faultf(0, "the file is not UTF-8 text; save it as UTF-8")
	}
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	front, body, found, flt := cutFrontmatter(text)
	if flt != nil {
		return document{}, flt
	}
	d := document{body: strings.TrimSpace(body)}
	if !found {
		d.unread = unreadFrontmatter(text)
		return d, nil
	}
	d.meta, d.lines, flt = parseFrontmatter(front)
	return d, flt
}

// cutFrontmatter splits a text. The frontmatter is preceded by an empty line for each blank line at
// the start of the text, so that line numbers are right. A first line of dashes without a closing one
// is a horizontal rule of Markdown, unless a key clearly follows.
func cutFrontmatter(text string) (front, body string, found bool, flt *fault) {
	start := strings.TrimLeft(text, " \t\n")
	blank := strings.Count(text[:len(text)-len(start)], "\n")
	first, rest, more := strings.Cut(start, "\n")
	if strings.TrimRight(first, " \t") != delimiter || !more {
		return "", text, false, nil
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\n") == delimiter {
			if at > maxFrontmatter {
				return "", "", false, faultf(blank+1, "the frontmatter has more than %d bytes", maxFrontmatter)
			}
			return strings.Repeat("\n", blank) + rest[:at], rest[at+len(line):], true, nil
		}
		at += len(line)
	}
	next, _, _ := strings.Cut(rest, "\n")
	if key, _, ok := strings.Cut(next, ":"); ok && key != "" && !strings.ContainsAny(key, " \t#") {
		return "", "", false, faultf(blank+1, "the frontmatter that begins here has no closing line of three dashes")
	}
	return "", text, false, nil
}

// parseFrontmatter parses YAML. Aliases are refused, since a few lines of them can expand to
// gigabytes.
func parseFrontmatter(front string) (meta map[string]any, lines map[string]int, flt *fault) {
	defer func() {
		if p := recover(); p != nil { // the parser panics on some invalid input
			meta, lines, flt = nil, nil, faultf(2, "the frontmatter cannot be read: %v", p)
		}
	}()
	if line, deep := nestedTooDeeply(front); deep {
		return nil, nil, faultf(line, "the frontmatter is nested deeper than %d levels", maxNesting)
	}
	file, err := parser.ParseBytes([]byte(front), 0)
	if err != nil {
		return nil, nil, yamlFault(err)
	}
	meta, lines = map[string]any{}, map[string]int{}
	if len(file.Docs) > 1 {
		return nil, nil, faultf(2, "the frontmatter must be a single YAML document")
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return meta, lines, nil
	}
	root := file.Docs[0].Body
	visit := &visitor{}
	ast.Walk(visit, root)
	if visit.flt != nil {
		return nil, nil, visit.flt
	}
	switch n := root.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			lines[v.Key.String()] = lineOf(v.Key)
		}
	case *ast.MappingValueNode:
		lines[n.Key.String()] = lineOf(n.Key)
	case *ast.NullNode, *ast.CommentGroupNode:
		return meta, lines, nil
	default:
		return nil, nil, faultf(2, "the frontmatter must be lines like description: TEXT, not a %s", strings.ToLower(root.Type().String()))
	}
	if err := yaml.NodeToValue(root, &meta); err != nil {
		return nil, nil, yamlFault(err)
	}
	return meta, lines, nil
}

// nestedTooDeeply reports whether brackets or indentation are nested too deeply for the recursive
// parser.
func nestedTooDeeply(front string) (line int, deep bool) {
	depth, line := 0, 1
	for text := range strings.Lines(front) {
		line++
		indent := len(text) - len(strings.TrimLeft(text, " -?"))
		if indent > 2*maxNesting {
			trimmed := strings.TrimLeft(text, " ")
			if len(trimmed)-len(strings.TrimLeft(trimmed, " -?")) > 2*maxNesting {
				return line, true
			}
		}
		for _, r := range text {
			switch r {
			case '[', '{':
				if depth++; depth > maxNesting {
					return line, true
				}
			case ']', '}':
				depth = max(0, depth-1)
			}
		}
	}
	return 0, false
}

// visitor finds unsupported YAML.
type visitor struct{ flt *fault }

// Visit implements ast.Visitor.
func (v *visitor) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		if v.flt == nil {
			v.flt = faultf(lineOf(n), "anchors and aliases are not supported: put a text that begins with & or * in quotes")
		}
	}
	if v.flt != nil {
		return nil
	}
	return v
}

// lineOf returns the line of a node in the file, in which the dashes are line 1.
func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line + 1
	}
	return 2
}

// The getters below return a key's value, or a fault that says what the value must be. A null value
// counts as absent.

func (d document) line(key string) int { return max(d.lines[key], 1) }

func (d document) text(key string) (string, *fault) {
	switch v := d.meta[key].(type) {
	case nil:
		return "", nil
	case string:
		return strings.TrimSpace(v), nil
	case bool, int, int64, uint64, float64:
		return fmt.Sprint(v), nil
	default:
		return "", faultf(d.line(key), "%s must be a text, not %s", key, kindName(v))
	}
}

// misspelledKeys returns a fault for each key that has no effect and is similar to a known one.
func (d document) misspelledKeys(known ...string) (out []*fault) {
	for _, key := range slices.Sorted(maps.Keys(d.meta)) {
		if hint := suggest.DidYouMean(key, known); hint != "" && !slices.Contains(known, key) {
			out = append(out, faultf(d.line(key), "unknown key %s; it has no effect%s", key, hint))
		}
	}
	return out
}

// texts accepts a list of texts, or a single text.
func (d document) texts(key string) ([]string, *fault) {
	list, ok := d.meta[key].([]any)
	if !ok {
		one, flt := d.text(key)
		if flt != nil {
			return nil, faultf(flt.line, "%s must be a text or a list of texts, not %s", key, kindName(d.meta[key]))
		}
		if one == "" {
			return nil, nil
		}
		return []string{one}, nil
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil, faultf(d.line(key), "%s must be a list of texts, not of %s", key, kindName(e))
		}
		out = append(out, strings.TrimSpace(s))
	}
	return out, nil
}

func (d document) number(key string) (int, *fault) {
	switch v := d.meta[key].(type) {
	case nil:
		return 0, nil
	case uint64:
		if v > 0 && v < 1<<31 {
			return int(v), nil
		}
	}
	return 0, faultf(d.line(key), "%s must be a whole number above 0", key)
}

func kindName(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "keys and values"
	}
	return "a number"
}
