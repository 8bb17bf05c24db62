package repomap

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// mapper says what it was asked.
type mapper struct{}

func (mapper) RepoMap(_ context.Context, roots, focus []string, tokens int) (string, error) {
	return fmt.Sprint("map of ", roots, focus, tokens), nil
}

func (mapper) FindDefinitions(_ context.Context, roots []string, query string, focus []string, tokens int) (string, error) {
	if query == "nothing" {
		return "", nil
	}
	return fmt.Sprint("definitions of ", query, " in ", roots, focus, tokens), nil
}

// With a query the tool lists definitions, and says so if nothing matches.
func TestQuery(t *testing.T) {
	tool := Tools(mapper{})[0]
	for args, want := range map[string]string{
		`{}`:                   "map of [/w] [] 4000",
		`{"query": "AddItem"}`: "definitions of AddItem in [/w] [] 4000",
		`{"query": "AddItem", "focus": ["a"], "budget": 200}`: "definitions of AddItem in [/w] [a] 200",
		`{"query": "nothing"}`:                                `No definition in the workspace matches "nothing".`,
	} {
		call := tools.Call{Roots: []string{"/w"}, Arguments: json.RawMessage(args)}
		result, err := tool.Run(context.Background(), call, nil)
		if err != nil || !strings.Contains(fmt.Sprint(result), want) {
			t.Errorf("%s: %v, %+v", args, err, result)
		}
	}
}
