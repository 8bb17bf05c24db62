package extensions

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlFault converts an error of the YAML parser to a fault with the line in the file.
func yamlFault(err error) *fault {
	const first = 2 // line of the YAML, which follows ---
	f := faultf(first, "%s", explainYAMLError(strings.TrimSpace(err.Error())))
	var y yaml.Error
	if errors.As(err, &y) {
		f.cause = explainYAMLError(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			f.line = t.Position.Line + first - 1
		}
	}
	return f
}

// explainYAMLError returns an explanation of an error of the YAML parser for the author of the file.
func explainYAMLError(text string) string {
	if name, _, ok := strings.Cut(text, " already defined at"); ok {
		return "the key " + strings.TrimPrefix(name, "mapping key ") + " occurs twice: remove one of them"
	}
	for _, m := range []struct{ parts, plain string }{ // the first match wins
		{"mapping value is not allowed|pre-defined", "a key does not fit here: put a text with a colon in quotes, and begin keys of one level in the same column"},
		{"end character of", "a quoted text has no closing quote"},
		{"found character '\t'|tab character", "tabs are not allowed here: indent with spaces"},
		{"reserved character|that cannot start any token", "a text cannot begin with this character: put it in quotes"},
		{"'}'|flow map", "a { has no matching }: add it, or put the value in quotes"},
		{"']'|sequence end", "a [ has no matching ]: add it, or put the value in quotes"},
		{"directive", "a text cannot begin with %: put it in quotes"},
		{"anchor|alias", "a text cannot begin with & or *: put it in quotes"},
		{"tag", "a text cannot begin with !: put it in quotes"},
		{"sequence", "a list entry does not fit here: begin all entries of a list in the same column"},
		{"key|value|map", "this is not a key with a value: write KEY: VALUE, and check the indentation"},
	} {
		for part := range strings.SplitSeq(m.parts, "|") {
			if strings.Contains(text, part) {
				return m.plain
			}
		}
	}
	return "invalid YAML: " + text
}
