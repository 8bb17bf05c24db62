package tools

import (
	"cmp"
	"slices"
)

// Registry is an immutable set of tools. Models see it in a stable order, so that the prefix of
// their prompt stays the same.
type Registry struct {
	byFullName map[string]Tool
	order      []Tool
}

// NewRegistry returns a registry; of several tools with the same full name, the last wins.
func NewRegistry(list ...Tool) *Registry {
	r := &Registry{byFullName: map[string]Tool{}}
	for _, t := range list {
		r.byFullName[t.Spec().FullName()] = t
	}
	for _, t := range r.byFullName {
		r.order = append(r.order, t)
	}
	slices.SortFunc(r.order, func(a, b Tool) int {
		return cmp.Compare(a.Spec().FullName(), b.Spec().FullName())
	})
	return r
}

// All returns all tools, sorted by full name. The slice must not be changed.
func (r *Registry) All() []Tool { return r.order }

// Lookup finds a tool by its full name, or a native one by its bare name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	if t, ok := r.byFullName[name]; ok {
		return t, true
	}
	t, ok := r.byFullName[Native+"__"+name]
	return t, ok
}

// Choice is a tool as it is offered to an agent.
type Choice struct {
	Spec
	Disabled bool
}
