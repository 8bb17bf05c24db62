// Package template renders the small template language of eca's prompts: a part of
// Django's, as the users of the reference write it (eca-features, section 10).
//
//	{{ name }}  {{ name|filter:"argument"|filter }}
//	{% if a and not b %} {% elif a = "x" %} {% else %} {% endif %}
//	{% for item in list %} {{ forloop.counter }} {% empty %} {% endfor %}
//	{% comment %} {% endcomment %}  {% verbatim %} {% endverbatim %}  {# remark #}
//
// Guarantees: rendering reads nothing but the variables it is given, calls nothing and
// takes bounded time and memory, whatever the template says. Values are inserted as they
// are: nothing in them is read as a template, and nothing is escaped. A missing variable
// is empty. Text without tags comes out byte for byte.
//
// It has no inheritance, no inclusion of files and no code: a template that wants them,
// or anything else unknown, does not parse.
package template

import (
	"fmt"
	"slices"
	"strings"
)

// Limits; a template beyond them is an error.
const (
	maxSource  = 1 << 20 // bytes of a template
	maxOutput  = 4 << 20 // bytes of what it renders to
	maxNesting = 50      // blocks within each other
	maxSteps   = 100_000 // pieces that are rendered, those in loops each time
)

// Vars are the variables of a template by name. A value is a string, a bool, an int or a
// []string; anything else counts as missing. A list is rendered with ", " between its
// elements.
type Vars map[string]any

// Template is a parsed template. It is immutable.
type Template struct {
	nodes []node
	names []string // of the variables it reads, sorted
}

// Parse reads a template. An error says in which line it is wrong and why.
func Parse(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, fmt.Errorf("the template has %d bytes, more than %d", len(source), maxSource)
	}
	p := &parser{remaining: source, line: 1, names: map[string]bool{}}
	nodes, end, err := p.block(0)
	if err == nil && end != "" {
		err = p.errorf("{%% %s %%} without a beginning", end)
	}
	if err != nil {
		return nil, err
	}
	t := &Template{nodes: nodes}
	for name := range p.names {
		t.names = append(t.names, name)
	}
	slices.Sort(t.names)
	return t, nil
}

// Reads reports whether the template reads any of the variables.
func (t *Template) Reads(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(t.names, name) })
}

// Render returns the text for some values. It fails only when the result would be too
// large or too much work.
func (t *Template) Render(vars Vars) (string, error) {
	r := &renderer{scopes: []Vars{vars}}
	if err := r.all(t.nodes); err != nil {
		return "", err
	}
	return r.out.String(), nil
}

// Text renders a text that may be a template; one that is not valid is returned as it is
// with the error.
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
