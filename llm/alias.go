package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Aliases maps names of tools and ids of calls to aliases that APIs accept: letters, digits, _ and
// -. Most names are valid already. Other APIs and MCP servers have no such limit, and one invalid
// name would make the whole conversation unusable.
type Aliases struct {
	maxLength   int
	letterFirst bool              // aliases must begin with a letter or _
	byName      map[string]string // aliases by name
	byAlias     map[string]string // names by alias
}

// NewAliases returns aliases of at most maxLength bytes.
func NewAliases(maxLength int) Aliases {
	return Aliases{maxLength: maxLength, byName: map[string]string{}, byAlias: map[string]string{}}
}

// Add returns the alias of a name. The same name always has the same alias, which differs from all
// other aliases.
func (a Aliases) Add(name string) string {
	if alias, ok := a.byName[name]; ok {
		return alias
	}
	base := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if base == "" || a.letterFirst && (base[0] == '-' || base[0] >= '0' && base[0] <= '9') {
		base = "_" + base
	}
	base = base[:min(len(base), a.maxLength)]
	alias := base
	for n := 2; a.isTaken(alias); n++ {
		suffix := "-" + strconv.Itoa(n)
		alias = base[:min(len(base), a.maxLength-len(suffix))] + suffix
	}
	a.byName[name], a.byAlias[alias] = alias, name
	return alias
}

func (a Aliases) isTaken(alias string) bool {
	_, ok := a.byAlias[alias]
	return ok
}

// Name returns the name of an alias. It returns any other text unchanged.
func (a Aliases) Name(alias string) string {
	if name, ok := a.byAlias[alias]; ok {
		return name
	}
	return alias
}

// Form is the form of tool names and call ids that an API accepts. Lengths are in bytes; 0 means no
// limit.
type Form struct {
	Name        int  // maximum length; names consist of letters, digits, _ and -
	LetterFirst bool // names must not begin with a digit or -
	ID          int
}

// Conform returns a copy of a request in which names and ids have the form f. This is necessary
// because the conversation may have begun with another API, and tools may come from MCP servers.
// Callers must translate the tool names in the answer back with names.
func Conform(req Request, f Form) (out Request, names Aliases) {
	names = NewAliases(f.Name)
	names.letterFirst = f.LetterFirst
	name := func(s string) string {
		if f.Name == 0 {
			return s
		}
		return names.Add(s)
	}
	req.Tools = slices.Clone(req.Tools)
	for i := range req.Tools {
		req.Tools[i].Name = name(req.Tools[i].Name)
	}
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		if !slices.ContainsFunc(m.Parts, isCallOrResult) {
			continue
		}
		parts := slices.Clone(m.Parts)
		for j, p := range parts {
			switch p := p.(type) {
			case ToolCall:
				p.ID, p.Name = shortID(p.ID, f.ID), name(p.Name)
				parts[j] = p
			case ToolResult:
				p.ID = shortID(p.ID, f.ID)
				parts[j] = p
			}
		}
		req.Messages[i].Parts = parts
	}
	return req, names
}

func isCallOrResult(p Part) bool {
	switch p.(type) {
	case ToolCall, ToolResult:
		return true
	}
	return false
}

// shortID returns an id of at most maxLength bytes. It depends only on id, so it is the same for a
// call and its result, and in every request.
func shortID(id string, maxLength int) string {
	if maxLength == 0 || len(id) <= maxLength {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:min(maxLength, 2*len(sum))]
}

// RestoreNames wraps a consumer of deltas so that it gets the real names of tools.
func (a Aliases) RestoreNames(yield func(Delta, error) bool) func(Delta, error) bool {
	return func(d Delta, err error) bool {
		if d.Kind == ToolStart {
			d.Name = a.Name(d.Name)
		}
		return yield(d, err)
	}
}
