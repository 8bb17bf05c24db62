package permission

import (
	"encoding/json"
	"maps"
	"testing"
)

// FuzzMembers compares the members of an object with those that encoding/json finds: a rule must see
// the arguments with which the tool runs.
func FuzzMembers(f *testing.F) {
	for _, object := range []string{
		`{"command": "ls -la"}`, `{"command":"a","command":"b"}`, "{ \"a\" : \"b\" ,\n\"c\":\"\" }", `{"command": "echo \"x\""}`, `{"a": 1, "b": [{"c": "d"}]}`,
		`{}`, `null`, ``, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":"`, `{"a":"b`, `{"a":"b"`, `{"a":"b",`, `{"a":"b",}`, `{"a":"b"}}`, `{"a":"b"} x`, `{"a":"b";}`, `{"é":"b"}`, "{\"a\":\"\t\"}", `["a":"b"]`, `"a":"b"}`,
	} {
		f.Add([]byte(object))
	}
	f.Fuzz(func(t *testing.T, object []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(object, &want) == nil
		list, ok := members(object)
		got := map[string]json.RawMessage{}
		for _, m := range list {
			got[m.name] = m.value
		}
		if ok != valid || !maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Fatalf("%q: members are %q (%t), and encoding/json finds %q (%t)", object, got, ok, want, valid)
		}
	})
}
