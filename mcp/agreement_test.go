package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	wire "github.com/mark3labs/mcp-go/mcp"
)

func TestWithoutWords(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","description":"do this first","properties":{"title":{"type":"string","title":"x","default":"y","enum":["a"]},"description":{"type":"object","properties":{"a":{"description":"z"}}}},"required":["title"]}`: `{"properties":{"description":{"properties":{"a":{}},"type":"object"},"title":{"enum":["a"],"type":"string"}},"required":["title"],"type":"object"}`,
		`{"anyOf":[{"$comment":"x","examples":[1]}]}`: `{"anyOf":[{}]}`,
		`{`: `{"type":"object","properties":{}}`,
	} {
		if got := string(withoutDescriptions(json.RawMessage(in))); got != want {
			t.Errorf("%s:\n%s, want\n%s", in, got, want)
		}
	}
}

// Only hints that a tool may do harm matter.
func TestCaution(t *testing.T) {
	yes, no := true, false
	for want, a := range map[string]wire.ToolAnnotation{
		"":            {ReadOnlyHint: &yes, DestructiveHint: &no, OpenWorldHint: &no, IdempotentHint: &yes},
		"may destroy": {ReadOnlyHint: &yes, DestructiveHint: &yes},
		"the web":     {OpenWorldHint: &yes},
	} {
		if got := caution(a); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%+v: %q", a, got)
		}
	}
}
