package cmdline

import (
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Parser parses programs for bash, and reuses the large buffers that this needs. The zero value is ready
// to use. It is safe for concurrent use.
type Parser struct{ idle sync.Pool }

// Parse parses a program.
func (p *Parser) Parse(text string) Program { return p.parse(text, nil) }

// Parse parses a program with a new Parser.
func Parse(text string) Program { return new(Parser).Parse(text) }

// parse parses a program. If it is the canonical form of another text, original has the assessments of
// that text.
func (p *Parser) parse(text string, original []*assessment) Program {
	parser, ok := p.idle.Get().(*syntax.Parser)
	if !ok {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	defer p.idle.Put(parser)
	w := &walker{parser: parser, original: original}
	w.text(text, 0, true)
	if w.out.tree != nil {
		w.out.tree.parsers, w.out.tree.assessed = p, w.assessed
	}
	return w.out
}
