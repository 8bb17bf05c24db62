package mcp

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// repeatsStructured reports whether the texts of a result have the same content as its structured
// content. Many servers send both, because some clients support only text. Some servers also wrap a
// structured value that is not an object in an object with one member.
func repeatsStructured(structured json.RawMessage, texts []string) bool {
	value, ok := parseJSON(string(structured))
	if !ok || len(texts) == 0 {
		return false
	}
	candidates := []any{value}
	if object, ok := value.(map[string]any); ok && len(object) == 1 {
		for _, member := range object {
			candidates = append(candidates, member)
		}
	}
	for _, c := range candidates {
		for _, text := range append([]string{strings.Join(texts, "\n"), strings.Join(texts, "")}, texts...) {
			if sameAsText(c, text) {
				return true
			}
		}
		list, ok := c.([]any)
		if same := ok && len(list) == len(texts); same {
			for i := range list {
				same = same && sameAsText(list[i], texts[i])
			}
			if same {
				return true
			}
		}
	}
	return false
}

// sameAsText reports whether a text is equal to a string value, or is the JSON of a value.
func sameAsText(value any, text string) bool {
	if s, ok := value.(string); ok && strings.TrimSpace(s) == strings.TrimSpace(text) {
		return true
	}
	other, ok := parseJSON(text)
	return ok && sameJSON(value, other)
}

// parseJSON parses a text that contains exactly one value.
func parseJSON(text string) (value any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&value) != nil {
		return nil, false
	}
	_, err := d.Token()
	return value, err == io.EOF
}

// sameJSON reports whether two values are equal, regardless of the order of members and the
// notation of numbers.
func sameJSON(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, member := range a {
			if other, has := b[key]; !has || !sameJSON(member, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !sameJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(string(a), string(b))
	}
	return a == b
}

func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if !strings.ContainsAny(a+b, ".eE") {
		return strings.TrimPrefix(a, "-") == "0" && strings.TrimPrefix(b, "-") == "0"
	}
	x, errA := strconv.ParseFloat(a, 64)
	y, errB := strconv.ParseFloat(b, 64)
	return errA == nil && errB == nil && x == y
}
