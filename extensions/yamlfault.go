package extensions

import (
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlFault converts an error of the YAML parser to a fault with the line in the file.
func yamlFault(err error) *fault {
	f := faultf(2, "%s", plainYAML(strings.TrimSpace(err.Error())))
	var y yaml.Error
	if errors.As(err, &y) {
		f.cause = plainYAML(y.GetMessage())
		if t := y.GetToken(); t != nil && t.Position != nil {
			f.line = t.Position.Line + 1
		}
	}
	return f
}

// plainYAML explains an error of the YAML parser to the author of the file.
func plainYAML(text string) string {
	if name, _, ok := strings.Cut(text, " already defined at"); ok {
		return "the key " + strings.TrimPrefix(name, "mapping key ") + " occurs twice: remove one of them"
	}
	for _, m := range []struct{ parts, plain string }{ // the first match wins
		{"mapping value is not allowed|pre-defined", "a key does not fit here: put a text with a colon in quotes, and begin keys of one level in the same column"},
		{"end character of", "a quoted text has no closing quote"},
		{"found character '\t'|tab character", "tabs are not allowed here: indent with spaces"},
		{"reserved character|that cannot start any token", "a text cannot begin with this character: put it in quotes"},
		{"'}'|flow map", "a { and its } do not match: close it, or put the text in quotes"},
		{"']'|sequence end", "a [ and its ] do not match: close it, or put the text in quotes"},
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
