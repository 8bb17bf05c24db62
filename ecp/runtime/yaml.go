package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// kind is the type of a value in a document.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindList
	kindMap
	kindOther // dates and other types that no key of a manifest has
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "an integer", "a number", "a string", "a list", "a mapping", "a date"}[k]
}

// node is a value of a document with its position.
type node struct {
	kind      kind
	line, col int    // from 1
	text      string // of a scalar
	quoted    bool
	keys      []key // of a mapping, in order and without duplicates
	list      []*node
}

type key struct {
	name      string
	line, col int
	value     *node
}

func (n *node) get(name string) *node {
	for i := range n.keys {
		if n.keys[i].name == name {
			return n.keys[i].value
		}
	}
	return nil
}

// maxValues limits the number of values in a document, with aliases expanded.
const maxValues = 1 << 20

// builder converts the syntax tree of a document to nodes.
type builder struct {
	anchors    map[string]*node
	sizes      map[*node]int // number of values in a node, with aliases expanded
	duplicates []Problem
}

// parseYAML parses one document. Unquoted scalars have the types of YAML 1.1, as in the reference: yes
// is a boolean. Keys that occur twice are returned as warnings.
func parseYAML(data []byte) (root *node, duplicates []Problem, err error) {
	defer func() { // the third-party parser may panic on untrusted input
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot read the document: %v", r)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if safeio.IsUTF16(data) {
		return nil, nil, &Problem{Line: 1, Column: 1, Message: "the text is UTF-16; save it as UTF-8"}
	}
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, nil, syntaxError(err)
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			at := doc.Body.GetToken().Position
			return nil, nil, &Problem{Line: at.Line, Column: at.Column, Message: "a manifest is one document, but another one begins here"}
		}
		body = doc.Body
	}
	if body == nil {
		return &node{kind: kindNull, line: 1, col: 1}, nil, nil
	}
	b := &builder{anchors: map[string]*node{}, sizes: map[*node]int{}}
	root, err = b.build(body, 0)
	return root, b.duplicates, err
}

func syntaxError(err error) error {
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil {
		return &Problem{Line: syntax.Token.Position.Line, Column: syntax.Token.Position.Column, Message: "invalid YAML: " + syntax.Message}
	}
	return &Problem{Line: 1, Column: 1, Message: "invalid YAML: " + err.Error()}
}

// maxDepth limits the nesting of values.
const maxDepth = 200

func (b *builder) build(n ast.Node, depth int) (*node, error) {
	at := position(n)
	fail := func(format string, args ...any) error {
		return &Problem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
	}
	if depth > maxDepth {
		return nil, fail("values are nested more than %d levels deep", maxDepth)
	}
	out := &node{line: at.Line, col: at.Column}
	switch n := n.(type) {
	case *ast.AnchorNode:
		value, err := b.build(n.Value, depth+1)
		if err == nil {
			b.anchors[n.Name.GetToken().Value] = value
		}
		return value, err
	case *ast.AliasNode:
		name := n.Value.GetToken().Value
		if value, ok := b.anchors[name]; ok {
			return value, nil
		}
		return nil, fail("alias *%s has no anchor before it", name)
	case *ast.TagNode:
		return b.buildTagged(n, depth)
	case *ast.SequenceNode:
		out.kind = kindList
		size := 1
		for _, e := range n.Values {
			value, err := b.build(e, depth+1)
			if err != nil {
				return nil, err
			}
			out.list = append(out.list, value)
			size += b.size(value)
		}
		return out, b.setSize(out, size)
	case ast.MapNode:
		return out, b.buildMapping(out, n, depth)
	}
	scalar(out, n)
	return out, nil
}

func (b *builder) size(n *node) int { return max(b.sizes[n], 1) }

func (b *builder) setSize(n *node, size int) error {
	b.sizes[n] = size
	if size > maxValues {
		return &Problem{Line: n.line, Column: n.col, Message: fmt.Sprintf("more than %d values when aliases are followed", maxValues)}
	}
	return nil
}

func (b *builder) buildMapping(out *node, n ast.MapNode, depth int) error {
	out.kind = kindMap
	size := 1
	var merged []*node
	for it := n.MapRange(); it.Next(); {
		at := position(it.Key())
		value, err := b.build(it.Value(), depth+1)
		if err != nil {
			return err
		}
		size += b.size(value)
		if it.Key().IsMergeKey() {
			if value.kind == kindList {
				merged = append(merged, value.list...)
			} else {
				merged = append(merged, value)
			}
			continue
		}
		k := &node{}
		scalar(k, it.Key())
		if other := out.get(k.text); other != nil {
			b.duplicates = append(b.duplicates, Problem{Line: at.Line, Column: at.Column, Key: k.text, Warning: true, Message: "duplicate key in this mapping; the last value is used"})
			for i := range out.keys {
				if out.keys[i].name == k.text {
					out.keys[i] = key{k.text, at.Line, at.Column, value}
				}
			}
			continue
		}
		out.keys = append(out.keys, key{k.text, at.Line, at.Column, value})
	}
	for _, m := range merged {
		for _, k := range m.keys {
			if out.get(k.name) == nil {
				out.keys = append(out.keys, k)
			}
		}
	}
	return b.setSize(out, size)
}

// buildTagged builds a value with an explicit type. Only the types of JSON are supported.
func (b *builder) buildTagged(n *ast.TagNode, depth int) (*node, error) {
	tag := n.GetToken().Value
	value, err := b.build(n.Value, depth+1)
	if err != nil {
		return nil, err
	}
	switch tag {
	case "!!str":
		if value.kind < kindList || value.kind == kindOther {
			value.kind, value.quoted = kindString, true
		}
	case "!!map", "!!seq", "!!int", "!!float", "!!bool", "!!null":
	default:
		at := position(n)
		return nil, &Problem{Line: at.Line, Column: at.Column, Message: "the tag " + tag + " is not known"}
	}
	return value, nil
}

func position(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingValueNode); ok {
		return position(m.Key)
	}
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return position(m.Values[0])
	}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		return n.GetToken().Position
	}
	return &token.Position{Line: 1, Column: 1}
}

// scalar sets the fields of a node from a scalar.
func scalar(out *node, n ast.Node) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		out.kind, out.text, out.quoted = kindString, n.Value.Value, true
		return
	case *ast.StringNode:
		out.text = n.Value
		t := n.GetToken().Type
		out.quoted = t == token.SingleQuoteType || t == token.DoubleQuoteType
	case *ast.NullNode:
		return
	case *ast.MappingKeyNode:
		scalar(out, n.Value)
		return
	default:
		if n != nil && n.GetToken() != nil {
			out.text = n.GetToken().Value
		}
	}
	out.kind = kindString
	if !out.quoted {
		out.kind = unquotedKind(out.text)
	}
}

var (
	yamlNull  = pattern.Lazy(`^(~|null|Null|NULL|)$`)
	yamlBool  = pattern.Lazy(`^(yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$`)
	yamlInt   = pattern.Lazy(`^([-+]?0b[0-1_]+|[-+]?0[0-7_]+|[-+]?(0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(:[0-5]?[0-9])+)$`)
	yamlFloat = pattern.Lazy(`^([-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	yamlDate  = pattern.Lazy(`^\d{4}-\d\d?-\d\d?([Tt ].*)?$`)
)

// unquotedKind returns the type of an unquoted scalar.
func unquotedKind(text string) kind {
	switch {
	case yamlNull().MatchString(text):
		return kindNull
	case yamlBool().MatchString(text):
		return kindBool
	case yamlInt().MatchString(text):
		return kindInt
	case yamlFloat().MatchString(text):
		return kindFloat
	case yamlDate().MatchString(text):
		return kindOther
	}
	return kindString
}

// value returns a node in the Go types that decoding from JSON would give, except that integers are
// int64.
func (n *node) value() any {
	switch n.kind {
	case kindBool:
		return strings.ContainsAny(n.text[:1], "yYtT") || strings.EqualFold(n.text, "on")
	case kindInt:
		return n.integer()
	case kindFloat:
		return n.float()
	case kindString, kindOther:
		return n.text
	case kindList:
		out := make([]any, len(n.list))
		for i, e := range n.list {
			out[i] = e.value()
		}
		return out
	case kindMap:
		out := make(map[string]any, len(n.keys))
		for _, k := range n.keys {
			out[k.name] = k.value.value()
		}
		return out
	}
	return nil
}

func (n *node) integer() any {
	text := strings.ReplaceAll(n.text, "_", "")
	if strings.Contains(text, ":") {
		return n.text // YAML 1.1 would read it in base 60, which authors do not intend
	}
	if v, err := strconv.ParseInt(text, 0, 64); err == nil {
		return v
	}
	if v, err := strconv.ParseUint(strings.TrimPrefix(text, "+"), 0, 64); err == nil {
		return v
	}
	v, _ := strconv.ParseFloat(text, 64)
	return v
}

func (n *node) float() any {
	text := strings.ReplaceAll(strings.ToLower(n.text), "_", "")
	switch strings.TrimLeft(text, "+-") {
	case ".inf":
		return math.Inf(map[bool]int{true: -1, false: 1}[strings.HasPrefix(text, "-")])
	case ".nan":
		return math.NaN()
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return n.text
	}
	return v
}
