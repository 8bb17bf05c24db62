package a2a

import (
	"encoding/json"
	"testing"
)

// Names of the schema are read as those of A2A; names that callers choose stay the same.
func TestProtoNames(t *testing.T) {
	for in, want := range map[string]string{
		`{"taskId":"a_b"}`:                       `{"taskId":"a_b"}`,
		`{"task_id":"t","page_size":3,"id":"a"}`: `{"id":"a","pageSize":3,"taskId":"t"}`,
		`{"task_id":"schema","taskId":"json"}`:   `{"taskId":"json"}`,
		`{"message":{"message_id":"m","parts":[{"media_type":"x/y","data":{"tool_call_id":1}}],"metadata":{"a_b":1}},"metadata":{"c_d":2}}`: `{"message":{"messageId":"m","metadata":{"a_b":1},"parts":[{"data":{"tool_call_id":1},"mediaType":"x/y"}]},"metadata":{"c_d":2}}`,
		`{"configuration":{"history_length":0,"task_push_notification_config":{"task_id":"x","authentication":{"scheme":"a_b"}}}}`:          `{"configuration":{"historyLength":0,"taskPushNotificationConfig":{"authentication":{"scheme":"a_b"},"taskId":"x"}}}`,
		`null_`: `null_`, `{"a_b":`: `{"a_b":`, `[1,{"a_b":1}]`: `[1,{"aB":1}]`, `{"__":1}`: `{"":1}`,
	} {
		if got := string(camelCaseParams(json.RawMessage(in))); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", in, got, want)
		}
	}
}

func FuzzProtoNames(f *testing.F) {
	f.Add([]byte(`{"a_b":{"message":[{"c_d":1}]},"message":{"parts":[{"x_y":[]}]}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		out := camelCaseParams(raw)
		if json.Valid(raw) && !json.Valid(out) {
			t.Errorf("%s became %s", raw, out)
		}
	})
}
