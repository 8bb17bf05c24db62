// Package template renders eca's prompts. The template language is a subset of Django's, as users of
// the reference server write it (eca-features.md, section 10).
//
//	{{ name }}  {{ name|filter:"argument"|filter }}
//	{% if a and not b %} {% elif a = "x" %} {% else %} {% endif %}
//	{% for item in list %} {{ forloop.counter }} {% empty %} {% endfor %}
//	{% comment %} {% endcomment %}  {% verbatim %} {% endverbatim %}  {# remark #}
//
// Guarantees: a template can read only the given variables and call only the built-in filters. Time
// and memory are bounded for every template. Values are inserted unchanged: tags in a value have no
// effect, and nothing is escaped. A missing variable is empty. Text without tags is not changed.
//
// There is no inheritance, no inclusion of files and no code. Parse rejects unknown tags and filters.
package template

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of a template.
const (
	maxSource  = 1 << 20 // bytes of a template
	maxOutput  = 4 << 20 // bytes of the rendered text
	maxNesting = 50      // nested blocks
	maxSteps   = 100_000 // rendered nodes, in loops once per iteration
)

// Vars are the variables of a template by name. A value is a string, a bool, an int or a []string;
// other values count as missing. A list is rendered with ", " between its elements.
type Vars map[string]any

// Template is a parsed template. It is immutable.
type Template struct {
	nodes []node
	names []string // of the variables that it uses, sorted
}

// Parse parses a template. Errors name the line and the cause.
func Parse(source string) (t *Template, err error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes, more than %d", len(source), maxSource)
	}
	defer catch(&err)
	p := &parser{remaining: source, line: 1, names: map[string]bool{}}
	nodes, end := p.block(0)
	if end != "" {
		p.fail("{%% %s %%} without a beginning", end)
	}
	return &Template{nodes, slices.Sorted(maps.Keys(p.names))}, nil
}

// Reads reports whether the template uses any of the variables.
func (t *Template) Reads(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(t.names, name) })
}

// Render renders the template with the given values. It fails only if the result or the work
// exceeds a limit.
func (t *Template) Render(vars Vars) (string, error) {
	r := &renderer{scopes: []Vars{vars}}
	if err := r.renderAll(t.nodes); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// Text parses and renders source. If that fails, it returns source unchanged, and the error.
func Text(source string, vars Vars) (string, error) {
	if !strings.Contains(source, "{{") && !strings.Contains(source, "{%") && !strings.Contains(source, "{#") {
		return source, nil
	}
	t, err := Parse(source)
	if err != nil {
		return source, err
	}
	out, err := t.Render(vars)
	if err != nil {
		return source, err
	}
	return out, nil
}
