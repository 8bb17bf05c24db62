package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/bug"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// decode turns the merged map into a Config, dropping values of a wrong type.
func (b *builder) decode() *Config {
	pruner{spellings: b.spellings, expanded: true, report: b.problemAt}.prune(b.merged, b.keys, nil)
	cfg := &Config{}
	if err := fill(reflect.ValueOf(cfg).Elem(), b.merged, b.keys); err != nil {
		bug.Reportf("configuration does not decode after pruning: %v", err)
	}
	return cfg
}

// fill sets the same fields as encoding/json would. encoding/json needs the whole configuration as
// JSON first and builds encoders for all its types, which takes a third of the time to read a
// configuration.
func fill(to reflect.Value, v any, k *key) error {
	if v == nil {
		return nil
	}
	if one, isString := v.(string); isString && to.Type() == reflect.TypeFor[Strings]() {
		to.Set(reflect.ValueOf(Strings{one}))
		return nil
	}
	if u, ok := to.Addr().Interface().(json.Unmarshaler); ok && to.Kind() == reflect.Struct {
		raw, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return u.UnmarshalJSON(raw)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return fill(to.Elem(), v, k)
	case reflect.Interface:
		to.Set(reflect.ValueOf(clone(v)))
	case reflect.Int, reflect.Int64:
		f, _ := v.(float64)
		to.SetInt(int64(f))
	case reflect.Slice:
		list, _ := v.([]any)
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, e := range list {
			if err := fill(to.Index(i), e, k.elem()); err != nil {
				return err
			}
		}
	case reflect.Map:
		m, _ := v.(map[string]any)
		to.Set(reflect.MakeMapWithSize(to.Type(), len(m)))
		for key, sub := range m {
			elem := reflect.New(to.Type().Elem()).Elem()
			if err := fill(elem, sub, k.elem()); err != nil {
				return err
			}
			to.SetMapIndex(reflect.ValueOf(key).Convert(to.Type().Key()), elem)
		}
	case reflect.Struct:
		m, _ := v.(map[string]any)
		for name, sub := range m {
			if field := k.member(name); field != nil {
				if err := fill(to.FieldByIndex(field.index), sub, field); err != nil {
					return err
				}
			}
		}
	default:
		to.Set(reflect.ValueOf(v).Convert(to.Type()))
	}
	return nil
}

// pruneLayer drops values that keys do not accept from a layer, so that the values of other layers
// and the defaults apply.
func (b *builder) pruneLayer(l *layer) {
	report := func(path []string, format string, args ...any) {
		at := path
		for len(at) > 1 && l.positions[join(at)].line == 0 { // an element of a list
			at = at[:len(at)-1]
		}
		b.Problems = append(b.Problems, Problem{Origin: l.origin(at), Cause: fmt.Sprintf(format, args...), key: join(path)})
	}
	pruner{spellings: b.spellings, report: report}.prune(l.content, b.keys, nil)
}

// pruner removes values that their keys do not accept, and reports them.
type pruner struct {
	spellings map[string]string
	expanded  bool // texts contain no more ${...}
	report    func(path []string, format string, args ...any)
}

// prune removes invalid members of objects and elements of lists from a value. It returns the
// remaining value, and reports whether the value itself is valid.
func (p pruner) prune(v any, k *key, path []string) (any, bool) {
	if v == nil || k.typ.Kind() == reflect.Interface {
		return v, true
	}
	name := func() string { return KeyPath(spelledPath(p.spellings, path)) }
	if !k.acceptsType(v) {
		p.report(path, "%s must be %s, not %s; %s", name(), typeNames(k.types), kindName(v), k.consequence())
		return k.replacement()
	}
	switch v := v.(type) {
	case string:
		if k.elem() != nil {
			k = k.elem() // a list that is written as a single value
		}
		unresolved := !p.expanded && strings.Contains(v, "${")
		if k.tag.Get("strict") != "" && v != "" && !unresolved && !slices.Contains(k.enum(), v) {
			hint := ""
			if meant := suggest.Nearest(v, k.enum()); meant != "" {
				hint = fmt.Sprintf("; did you mean %q?", meant)
			}
			p.report(path, "%s must be one of %s, not %.40q; %s%s", name(), strings.Join(k.enum(), ", "), v, k.consequence(), hint)
			return k.replacement()
		}
	case float64:
		if why := k.violatedRange(v); why != "" {
			p.report(path, "%s must be %s, not %v; it is ignored", name(), why, v)
			return v, false
		}
	case []any:
		valid := make([]any, 0, len(v))
		for i, e := range v {
			if e, fits := p.prune(e, k.elem(), append(slices.Clone(path), strconv.Itoa(i))); fits {
				valid = append(valid, e)
			}
		}
		return valid, true
	case map[string]any:
		if allowRule(path) {
			return p.pruneAllowRule(v, k, path), true
		}
		for name, sub := range v {
			field := k.member(name)
			if field == nil {
				delete(v, name) // encoding/json would accept another case
				continue
			}
			if sub, fits := p.prune(sub, field, append(slices.Clone(path), name)); fits {
				v[name] = sub
			} else {
				delete(v, name)
			}
		}
	}
	return v, true
}

// allowRule reports whether a path leads to a rule that allows calls.
func allowRule(path []string) bool {
	n := len(path)
	return n > 3 && slices.Equal(path[n-4:n-1], []string{"toolCall", "approval", "allow"})
}

// allowsNothing is the consequence of a mistake in a rule that allows calls.
const allowsNothing = ", so this rule allows nothing"

// pruneAllowRule removes the invalid members of a rule that allows calls. A rule that loses a member
// allows nothing, because the rest of it would allow more calls than the user meant.
func (p pruner) pruneAllowRule(rule map[string]any, k *key, path []string) map[string]any {
	memberLost := false
	strict := p
	strict.report = func(path []string, format string, args ...any) {
		memberLost = true
		p.report(path, "%s", fmt.Sprintf(format, args...)+allowsNothing)
	}
	for _, name := range sortedKeys(rule) {
		field := k.member(name)
		if field == nil {
			memberLost = true
		} else if sub, fits := strict.prune(rule[name], field, append(slices.Clone(path), name)); fits {
			rule[name] = sub
			continue
		}
		delete(rule, name)
	}
	if memberLost {
		return map[string]any{"argsMatchers": map[string]any{}} // matches no call
	}
	return rule
}

// originOf returns the origin of a value, or of the object that contains it.
func (l *Loaded) originOf(path []string) Origin {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if o, ok := l.origins[join(path)]; ok {
			return o
		}
	}
	return Origin{Source: "configuration"}
}
