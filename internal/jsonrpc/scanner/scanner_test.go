package scanner

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// The scanner accepts exactly what the decoder accepts.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1,"\"}"]}}`, `{"jsonrpc":"2.0","id":null,"method":"x","params":null}`,
		`{"jsonrpc":"2.0","id":"é\u0041","method":"a\/b"}`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"x","method":"y"}`, `{"jsonrpc":"2.0","id":1.5,"method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"method":""}`, `{"jsonrpc":"2.0","id":1,"method":3}`, `{"jsonrpc":"1.0","id":1,"method":"x"}`, `{"id":1,"method":"x"}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"method":"x","result":1}`, `{"jsonrpc":"2.0","id":9223372036854775808,"method":"x"}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonrpc.Check(body) != nil {
			return
		}
		var escaped map[string]json.RawMessage
		if json.Unmarshal(body, &escaped) == nil {
			if again, _ := json.Marshal(escaped); len(again) != len(body) {
				return // the scanner does not support escapes in names of members
			}
		}
		got, bad := Decode(body)
		want, wrong := jsonrpc.DecodeEditor(body)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(jsonrpc.Error{})); diff != "" || (bad == nil) != (wrong == nil) {
			t.Errorf("%s: %v, %v\n%s", body, bad, wrong, diff)
		}
	})
}
