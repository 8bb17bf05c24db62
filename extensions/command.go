package extensions

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/template"
)

// Command is a prompt that users invoke as /name (eca-features.md 15).
type Command struct {
	Name        string
	Description string
	Arguments   []Argument
	File        string
	Root        string // the workspace folder that it belongs to; empty if it is global
	Plugin      string // the name of its plugin; empty if it belongs to none
	Body        string

	hasNamedArguments bool // its placeholders are {{name}}
}

// Argument is an argument of a command.
type Argument struct {
	Name        string
	Description string
	Required    bool
}

// numberedPlaceholders matches placeholders by number, or for all arguments.
func numberedPlaceholders() *regexp.Regexp {
	return regexp.MustCompile(`\$(?:ARGUMENTS|ARGS|ARG(\d+)|(\d+))`)
}

// namedPlaceholders matches placeholders by name, with or without filters.
func namedPlaceholders() *regexp.Regexp {
	return regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)[^{}]*\}\}`)
}

func parseCommand(path, text string) (Command, *fault) {
	d, flt := parseDocument(text)
	if flt != nil {
		return Command{}, flt
	}
	base := filepath.Base(path)
	c := Command{Name: strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base))), File: path, Body: d.body}
	if c.Name == "" || strings.ContainsFunc(c.Name, unicode.IsSpace) {
		return Command{}, faultf(0, "the name of a command's file must be one word")
	}
	if c.Description, flt = d.text("description"); flt != nil {
		return Command{}, flt
	}
	names := c.placeholders()
	c.hasNamedArguments = namedPlaceholders().MatchString(c.Body)
	if c.hasNamedArguments && numberedPlaceholders().MatchString(c.Body) {
		return Command{}, faultf(0, "{{name}} and $1 or $ARGS cannot be mixed in one command")
	}
	declared, flt := d.arguments()
	if flt != nil {
		return Command{}, flt
	}
	for i, name := range names {
		arg := Argument{Name: name, Required: true}
		if at := slices.IndexFunc(declared, func(a Argument) bool { return a.Name == name }); c.hasNamedArguments && at >= 0 {
			arg = declared[at]
		} else if !c.hasNamedArguments && i < len(declared) {
			arg = declared[i]
		}
		c.Arguments = append(c.Arguments, arg)
	}
	if len(names) == 0 {
		c.Arguments = declared
	}
	return c, nil
}

// placeholders returns the placeholders that a call has to fill, in order.
func (c Command) placeholders() []string {
	var out []string
	if found := namedPlaceholders().FindAllStringSubmatch(c.Body, -1); found != nil {
		for _, m := range found {
			if !slices.Contains(out, m[1]) {
				out = append(out, m[1])
			}
		}
		return out
	}
	highest, all := 0, ""
	const most = 99
	for _, m := range numberedPlaceholders().FindAllStringSubmatch(c.Body, -1) {
		n, err := strconv.Atoi(m[1] + m[2])
		switch {
		case err != nil:
			all = strings.TrimPrefix(m[0], "$")
		case n <= most:
			highest = max(highest, n)
		}
	}
	for n := 1; n <= highest; n++ {
		out = append(out, "arg"+strconv.Itoa(n))
	}
	if highest == 0 && all != "" {
		out = append(out, strings.ToLower(all))
	}
	return out
}

// arguments parses the frontmatter's list of arguments.
func (d document) arguments() ([]Argument, *fault) {
	line := d.line("arguments")
	list, ok := d.meta["arguments"].([]any)
	if !ok && d.meta["arguments"] != nil {
		return nil, faultf(line, "arguments must be a list, not %s", kindName(d.meta["arguments"]))
	}
	out := make([]Argument, 0, len(list))
	for i, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, faultf(line, "arguments must be a list of entries with name, description and required, not of %s", kindName(e))
		}
		entry := document{meta: m, lines: map[string]int{"name": line, "description": line}}
		a := Argument{Required: true}
		var flt *fault
		if a.Name, flt = entry.text("name"); flt == nil {
			a.Description, flt = entry.text("description")
		}
		if flt != nil {
			return nil, flt
		}
		switch v := m["required"].(type) {
		case nil:
		case bool:
			a.Required = v
		default:
			return nil, faultf(line, "required must be true or false, not %s", kindName(v))
		}
		if a.Name == "" {
			a.Name = "arg" + strconv.Itoa(i+1)
		}
		out = append(out, a)
	}
	return out, nil
}

// Prompt returns the text with the arguments of a call filled in. rest is the text after the
// command's name, args the same split into arguments. Without an argument, numbered placeholders
// stay as they are and named ones become empty. Arguments that no placeholder uses are appended.
func (c Command) Prompt(rest string, args []string) string {
	if !c.hasNamedArguments {
		return substitute(c.Body, rest, args)
	}
	vars := template.Vars{}
	names := c.placeholders()
	for i, name := range names {
		if i < len(args) {
			vars[name] = args[i]
		}
	}
	text, err := template.Text(c.Body, vars)
	if err != nil {
		re := namedPlaceholders()
		text = re.ReplaceAllStringFunc(c.Body, func(place string) string {
			value, _ := vars[re.FindStringSubmatch(place)[1]].(string)
			return value
		})
	}
	return withUnusedArguments(text, args[min(len(names), len(args)):])
}

// withUnusedArguments returns a text with the arguments that it does not use yet.
func withUnusedArguments(text string, unused []string) string {
	if len(unused) == 0 {
		return text
	}
	return text + "\n\n" + strings.Join(unused, " ")
}

// substitute replaces $ARGS, $ARGUMENTS, $ARG1 and $1.
func substitute(text, rest string, args []string) string {
	all, used, re := false, map[int]bool{}, numberedPlaceholders()
	out := re.ReplaceAllStringFunc(text, func(place string) string {
		m := re.FindStringSubmatch(place)
		n, err := strconv.Atoi(m[1] + m[2])
		switch {
		case err != nil && m[1]+m[2] == "":
			all = true
			return rest
		case err != nil || n < 1 || n > len(args):
			return place
		}
		used[n] = true
		return args[n-1]
	})
	switch {
	case all:
		return out
	case len(used) == 0 && rest != "": // with the quotes that the user wrote
		return out + "\n\n" + rest
	}
	var unused []string
	for i, arg := range args {
		if !used[i+1] {
			unused = append(unused, arg)
		}
	}
	return withUnusedArguments(out, unused)
}
