package acp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// schemas are the schemas of ACP, by kind of message: updates, the agent's requests, and results.
type schemas struct {
	whole    jsonschema.Schema
	results  map[string]string // definition of an answer's result, by the method
	requests map[string]string // of a request's or notification's params
	mu       sync.Mutex
	compiled map[string]*jsonschema.Resolved
}

// schemaOf reads the schema in the npm package; nil without the package.
var schemaOf = sync.OnceValues(func() (*schemas, error) {
	dir := os.Getenv("ECA_NODE_TOOLS")
	if dir == "" {
		return nil, nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, "node_modules", "@agentclientprotocol", "sdk", "schema", "v1", "schema.json"))
	if err != nil {
		return nil, err
	}
	s := &schemas{results: map[string]string{}, requests: map[string]string{}, compiled: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal(raw, &s.whole); err != nil {
		return nil, err
	}
	var known struct {
		Defs map[string]struct {
			Method string `json:"x-method"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return nil, err
	}
	for name, def := range known.Defs {
		switch {
		case def.Method == "":
		case strings.HasSuffix(name, "Response"):
			s.results[def.Method] = name
		default:
			s.requests[def.Method] = name
		}
	}
	return s, nil
})

func (s *schemas) check(t testing.TB, definition string, value any) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	compiled := s.compiled[definition]
	if compiled == nil {
		var err error
		one := &jsonschema.Schema{Ref: "#/$defs/" + definition, Defs: s.whole.Defs}
		if compiled, err = one.Resolve(nil); err != nil {
			t.Fatal(err)
		}
		s.compiled[definition] = compiled
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%s: %v", definition, err)
	}
}

// TestSchema reports whether the messages of all other tests are checked against ACP's schema.
func TestSchema(t *testing.T) {
	testkit.NodeTools(t, os.Getenv)
	if s, err := schemaOf(); err != nil || s == nil || len(s.results) == 0 || len(s.requests) == 0 {
		t.Errorf("%+v, %v", s, err)
	}
}

// checkSchema checks a message of the agent against ACP's schema, if that is available (otherwise
// TestSchema says so).
func checkSchema(t testing.TB, c *client, line []byte) {
	t.Helper()
	s, err := schemaOf()
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return
	}
	var msg map[string]any
	if err := json.Unmarshal(line, &msg); err != nil {
		t.Fatal(err)
	}
	method, _ := msg["method"].(string)
	switch {
	case method == "$/cancel_request":
		s.check(t, "CancelRequestNotification", msg["params"])
	case method != "":
		definition, ok := s.requests[method]
		if !ok {
			t.Fatalf("the schema has no method %q", method)
		}
		s.check(t, definition, msg["params"])
	case msg["error"] != nil:
		s.check(t, "Error", msg["error"])
	default:
		definition, ok := s.results[c.methodOf(msg["id"])]
		if !ok {
			t.Fatalf("nobody knows what %s answers", line)
		}
		s.check(t, definition, msg["result"])
	}
	for key := range msg {
		if !strings.Contains(" jsonrpc id method params result error ", " "+key+" ") {
			t.Errorf("%s has %q", line, key)
		}
	}
}
