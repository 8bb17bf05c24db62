package anthropic

import (
	"strconv"
	"strings"
)

// maxName is the longest name of a tool that the API takes.
const maxName = 128

// aliases gives names of tools and ids of calls a form that the API takes: letters,
// digits, _ and -. Most have it already. Other APIs and MCP servers know no such limit,
// and one name out of form would make the whole conversation unusable.
type aliases struct {
	of    map[string]string // by name
	names map[string]string // by alias
}

func newAliases() aliases { return aliases{map[string]string{}, map[string]string{}} }

// add returns the alias of a name, always the same and of no other name.
func (a aliases) add(name string) string {
	if alias, ok := a.of[name]; ok {
		return alias
	}
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if base == "" {
		base = "_"
	}
	base = base[:min(len(base), maxName)]
	alias := base
	for n := 2; a.taken(alias); n++ {
		suffix := "-" + strconv.Itoa(n)
		alias = base[:min(len(base), maxName-len(suffix))] + suffix
	}
	a.of[name], a.names[alias] = alias, name
	return alias
}

func (a aliases) taken(alias string) bool {
	_, ok := a.names[alias]
	return ok
}

// name returns what an alias stands for; what is no alias stands for itself.
func (a aliases) name(alias string) string {
	if name, ok := a.names[alias]; ok {
		return name
	}
	return alias
}
