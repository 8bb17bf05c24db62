package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// maxVariants limits the number of variants of a matrix.
const maxVariants = 1000

// ParseConfig parses KEY=VALUE pairs. Dots in a key separate the keys of nested objects. A value is
// parsed as JSON if it is valid JSON, and is a string otherwise.
func ParseConfig(pairs []string) (map[string]any, error) {
	out := map[string]any{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%q is not of the form KEY=VALUE", pair)
		}
		if err := setNested(out, key, configValue(value)); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func configValue(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		return v
	}
	return text
}

func setNested(into map[string]any, key string, value any) error {
	first, rest, more := strings.Cut(key, ".")
	if !more {
		into[first] = value
		return nil
	}
	inner, ok := into[first].(map[string]any)
	if !ok {
		if into[first] != nil {
			return fmt.Errorf("%s already has a value, so it cannot have the key %s", first, rest)
		}
		inner = map[string]any{}
		into[first] = inner
	}
	return setNested(inner, rest, value)
}

// Matrix returns the variants for axes KEY=A,B,...: one for each combination of values. The key target
// is the agent; other keys are keys of config.
func Matrix(axes []string) ([]Variant, error) {
	out := []Variant{{}}
	for _, axis := range axes {
		key, values, ok := strings.Cut(axis, "=")
		if !ok || key == "" || values == "" {
			return nil, fmt.Errorf("%q is not of the form KEY=A,B", axis)
		}
		if twice, ok := firstDuplicate(key, strings.Split(values, ",")); ok {
			return nil, fmt.Errorf("%s has the value %q twice", key, twice)
		}
		var next []Variant
		for _, v := range out {
			if _, twice := v.Labels[key]; twice {
				return nil, fmt.Errorf("the key %s is given twice", key)
			}
			for value := range strings.SplitSeq(values, ",") {
				n, err := v.withValue(key, value)
				if err != nil {
					return nil, err
				}
				next = append(next, n)
			}
		}
		if out = next; len(out) > maxVariants {
			return nil, fmt.Errorf("more than %d combinations", maxVariants)
		}
	}
	if len(axes) == 0 {
		return nil, nil
	}
	return out, nil
}

// firstDuplicate returns the first value of an axis that equals an earlier one.
func firstDuplicate(key string, values []string) (value string, ok bool) {
	var seen []any
	for _, value := range values {
		meaning := any(value)
		if key != "target" {
			meaning = configValue(value)
		}
		if slices.ContainsFunc(seen, func(other any) bool { return reflect.DeepEqual(other, meaning) }) {
			return value, true
		}
		seen = append(seen, meaning)
	}
	return "", false
}

// withValue returns a variant with one more value.
func (v Variant) withValue(key, value string) (Variant, error) {
	out := Variant{Labels: map[string]string{key: value}, Target: v.Target, Config: map[string]any{}}
	maps.Copy(out.Labels, v.Labels)
	if key == "target" {
		out.Target = value
		maps.Copy(out.Config, v.Config)
		return out, nil
	}
	for k, val := range v.Labels {
		if k != "target" {
			if err := setNested(out.Config, k, configValue(val)); err != nil {
				return out, err
			}
		}
	}
	return out, setNested(out.Config, key, configValue(value))
}
