package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// passage is a piece of prose: it begins at a line of its file.
type passage struct {
	line int
	text string
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]+`")
	quoted     = regexp.MustCompile(`"[^"]{1,300}"`)
	link       = regexp.MustCompile(`\]\([^)\n]*\)|<https?://[^>\n]*>`)
)

// blank removes quotations and code from a text, and keeps its lines: what others say in their
// own words is not ours to judge.
func blank(text string, patterns ...*regexp.Regexp) string {
	for _, p := range patterns {
		text = p.ReplaceAllStringFunc(text, func(s string) string { return "X" + strings.Repeat("\n", strings.Count(s, "\n")) })
	}
	return text
}

// markdown returns the paragraphs of a page without its code and quotations.
func markdown(page string) []passage {
	var out []passage
	var text []string
	begin := 1
	flush := func(next int) {
		if joined := strings.Join(text, "\n"); strings.TrimSpace(joined) != "" {
			out = append(out, passage{begin, blank(joined, inlineCode, link, quoted)})
		}
		text, begin = nil, next
	}
	fence, generated := "", false
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case generated:
			generated = !strings.HasPrefix(trimmed, "<!-- end of ")
			begin = i + 2
		case strings.HasPrefix(trimmed, "<!-- ") && strings.Contains(trimmed, "-update -->"):
			flush(i + 2)
			generated = true // its source is judged
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
			begin = i + 2
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			flush(i + 2)
			fence = trimmed[:3]
		case trimmed == "", strings.HasPrefix(trimmed, ">"):
			flush(i + 2)
		case strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "|"):
			// A heading or the cells of a table: no sentence of one is the other's.
			flush(i + 1)
			for _, cell := range strings.Split(strings.Trim(trimmed, "#| "), " | ") {
				if strings.HasPrefix(trimmed, "#") {
					cell += "?" // a heading may be the beginning of a question
				}
				text = []string{cell}
				flush(i + 1)
			}
			begin = i + 2
		case strings.HasPrefix(trimmed, "- "), strings.HasPrefix(trimmed, "* "):
			flush(i + 1)
			text = []string{trimmed[2:]}
		default:
			text = append(text, line)
		}
	}
	flush(0)
	return out
}

// goSource returns the comments of a Go file and, of one that is not a test, the strings that
// have words, and the tags that document keys.
func goSource(t *testing.T, name string, source []byte, test bool) []passage {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var out []passage
	for _, group := range file.Comments {
		out = append(out, comment(files, group)...)
	}
	if test {
		return out
	}
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				tags[n.Tag] = true
				if raw, err := strconv.Unquote(n.Tag.Value); err == nil {
					for _, key := range []string{"doc", "each", "jsonschema"} {
						out = append(out, passage{files.Position(n.Tag.Pos()).Line, reflect.StructTag(raw).Get(key)})
					}
				}
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && !tags[n] && strings.Contains(n.Value, " ") {
				if text, err := strconv.Unquote(n.Value); err == nil {
					if strings.HasPrefix(n.Value, `"`) {
						text = strings.ReplaceAll(text, "\n", " ") // one line of source
					}
					out = append(out, passage{files.Position(n.Pos()).Line, blank(text, inlineCode, quoted)})
				}
			}
		}
		return true
	})
	return out
}

// comment returns the text of a group of comments, with as many lines as it has.
func comment(files *token.FileSet, group *ast.CommentGroup) []passage {
	var lines []string
	for _, c := range group.List {
		for _, line := range strings.Split(c.Text, "\n") {
			line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "/*"), "*/")
			if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "go:") {
				line = "" // code, or a directive
			}
			lines = append(lines, line)
		}
	}
	return []passage{{files.Position(group.Pos()).Line, blank(strings.Join(lines, "\n"), inlineCode, quoted)}}
}

// scriptProse matches the comments and strings in a line of another language.
var scriptProse = regexp.MustCompile(`(?:^|\s)(?://|--|;+|#|/\*+|\*)\s(.*)$|"([^"]*)"|'([^']*)'`)

// script returns the comments of a source in another language, and the strings that have words.
func script(source string) []passage {
	var out []passage
	for i, line := range strings.Split(source, "\n") {
		for _, m := range scriptProse.FindAllStringSubmatch(line, -1) {
			if text := m[1] + m[2] + m[3]; strings.Contains(text, " ") {
				out = append(out, passage{i + 1, blank(text, inlineCode, quoted)})
			}
		}
	}
	return out
}
