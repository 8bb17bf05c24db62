package jsonrpc

import (
	"encoding/json"
	"strings"
	"testing"
)

type inner struct {
	Cwd string `json:"cwd"`
}

// Errors name members of the message and JSON types, never Go types.
func TestExplain(t *testing.T) {
	for doc, want := range map[string]string{
		`{"cwd":5}`:                      "cwd must be a string, not a number",
		`{"list":[{},{"name":[]}]}`:      "list.name must be a string, not an array",
		`{"list":{}}`:                    "list must be an array, not an object",
		`{"count":1.5}`:                  "count must be an integer in range, not 1.5",
		`{"flag":"yes"}`:                 "flag must be a boolean, not a string",
		`{"deep":{"number":{}}}`:         "deep.number must be a number, not an object",
		`[]`:                             "the value must be an object, not an array",
		`{"deep":true}`:                  "deep must be an object, not a boolean",
		`{"cwd":`:                        "invalid JSON at byte 7",
		`{"deep":{"number":1},"cwd":{}}`: "cwd must be a string, not an object",
	} {
		var v struct {
			inner
			List []struct {
				Name string `json:"name"`
			} `json:"list"`
			Count int  `json:"count"`
			Flag  bool `json:"flag"`
			Deep  struct {
				Number float64 `json:"number"`
			} `json:"deep"`
		}
		err := json.Unmarshal([]byte(doc), &v)
		if err == nil {
			t.Errorf("%s decodes", doc)
			continue
		}
		got := Explain([]byte(doc), err).Error()
		if got != want || strings.Contains(got, "Go") {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}
