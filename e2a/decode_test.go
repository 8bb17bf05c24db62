package e2a

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// object reads JSON and keeps numbers as they are written.
func object(t testing.TB, doc string) map[string]any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(doc))
	dec.UseNumber()
	var o map[string]any
	if err := dec.Decode(&o); err != nil {
		t.Fatalf("%s: %v", doc, err)
	}
	return o
}

// members returns the members of a value that differ from the default, as they are written.
func members(t testing.TB, v, empty any) string {
	t.Helper()
	read := func(v any) map[string]any {
		line, err := Line(v)
		if err != nil {
			t.Fatal(err)
		}
		return object(t, string(line))
	}
	got, base := read(v), read(empty)
	for key, value := range base {
		if cmp.Equal(got[key], value) {
			delete(got, key)
		}
	}
	out, err := jsonrpc.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const emptyEnvelope = `{"protocol_version":"1.0","provenance":{"source_protocol":"e2a","converter":null,"converted_at":null,"details":{}},"request_id":null,"jsonrpc_id":null,"correlation_id":null,"task_id":null,"context_id":null,"session_id":null,"message_id":null,"timestamp":null,"identity_origin":"user","channel":null,"user_id":null,"agent_ref":null,"chat_id":null,"source_agent_id":null,"agent_id":null,"service_id":null,"workspace_key":null,"method":null,"params":{},"ext_method":null,"session_update_kind":null,"is_stream":false,"expected_output_modes":[],"auth":null,"channel_context":{},"a2a_metadata":{},"acp_meta":{}}`

const emptyResponse = `{"protocol_version":"1.0","response_id":"","request_id":null,"sequence":0,"is_final":false,"status":"in_progress","response_kind":"","timestamp":null,"provenance":{"source_protocol":"e2a","converter":null,"converted_at":null,"details":{}},"body":{},"jsonrpc_id":null,"correlation_id":null,"task_id":null,"context_id":null,"session_id":null,"message_id":null,"is_stream":false,"identity_origin":"agent","channel":null,"user_id":null,"agent_ref":null,"source_agent_id":null,"method":null,"projections":{},"channel_context":{},"metadata":{},"a2a_metadata":{},"acp_meta":{}}`

// Every declared field is written, with its default (e2a.md 1.1, 1.2, 3.1).
func TestDefaults(t *testing.T) {
	e, err := DecodeEnvelope([]byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := Line(e); err != nil || string(out) != emptyEnvelope+"\n" {
		t.Errorf("%v\n%s", err, cmp.Diff(emptyEnvelope+"\n", string(out)))
	}
	var r Response
	if err := json.Unmarshal([]byte(emptyResponse), &r); err != nil {
		t.Fatal(err)
	}
	if out, err := Line(r); err != nil || string(out) != emptyResponse+"\n" {
		t.Errorf("%v\n%s", err, cmp.Diff(emptyResponse+"\n", string(out)))
	}
	for v, want := range map[any]string{
		&Auth{}: `{"method_id":null,"bearer_token":null,"api_key_ref":null,"credential_ref":null,"extra_headers":{},"_meta":{}}`,
	} {
		if out, err := jsonrpc.Marshal(v); err != nil || string(out) != want {
			t.Errorf("%s, %v; want %s", out, err, want)
		}
	}
}

// TestEnvelopeFrom has a row for each rule of e2a.md 3.2: the input, and the members of the
// envelope that differ from the defaults.
func TestEnvelopeFrom(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"provenance", `{"provenance":{"source_protocol":"acp","converter":"c","converted_at":"t","details":{"a":1},"x":1}}`, `{"provenance":{"converted_at":"t","converter":"c","details":{"a":1},"source_protocol":"acp"}}`},
		{"provenance without a protocol", `{"provenance":{"details":null,"converter":"c"}}`, `{"provenance":{"converted_at":null,"converter":"c","details":{},"source_protocol":"e2a"}}`},
		{"provenance that is none", `{"provenance":"acp"}`, `{}`},
		{"provenance null", `{"provenance":null}`, `{}`},
		{"binding", `{"binding":"acp"}`, `{"provenance":{"converted_at":null,"converter":null,"details":{"migrated_from_binding":"acp"},"source_protocol":"acp"}}`},
		{"binding as an object", `{"binding":{"value":"a2a"}}`, `{"provenance":{"converted_at":null,"converter":null,"details":{"migrated_from_binding":"a2a"},"source_protocol":"a2a"}}`},
		{"binding of another kind", `{"binding":"internal"}`, `{"provenance":{"converted_at":null,"converter":null,"details":{"migrated_from_binding":"internal"},"source_protocol":"e2a"}}`},
		{"binding yields to a protocol", `{"binding":"acp","provenance":{"source_protocol":"a2a"}}`, `{"provenance":{"converted_at":null,"converter":null,"details":{"migrated_from_binding":"acp"},"source_protocol":"a2a"}}`},
		{"binding that was migrated", `{"binding":"acp","provenance":{"details":{"migrated_from_binding":"a2a"}}}`, `{"provenance":{"converted_at":null,"converter":null,"details":{"migrated_from_binding":"a2a"},"source_protocol":"e2a"}}`},
		{"binding null", `{"binding":null}`, `{}`},
		{"origin", `{"identity_origin":"service"}`, `{"identity_origin":"service"}`},
		{"params", `{"params":{"a":{"b":[1.50]}}}`, `{"params":{"a":{"b":[1.50]}}}`},
		{"params that say nothing", `{"params":""}`, `{}`},
		{"payload", `{"params":{"a":1},"payload":{"a":2,"b":"","c":0,"d":false,"e":null,"f":[],"g":{}}}`, `{"params":{"a":1,"b":"","c":0,"d":false}}`},
		{"payload wins nothing from null", `{"params":{"a":null},"payload":{"a":2}}`, `{"params":{"a":null}}`},
		{"payload that is none", `{"payload":"x"}`, `{}`},
		{"auth", `{"auth":{"method_id":"m","bearer_token":"b","extra_headers":{"X":"1"},"_meta":{"a":1}}}`, `{"auth":{"_meta":{"a":1},"api_key_ref":null,"bearer_token":"b","credential_ref":null,"extra_headers":{"X":"1"},"method_id":"m"}}`},
		{"auth of nothing", `{"auth":{}}`, `{"auth":{"_meta":{},"api_key_ref":null,"bearer_token":null,"credential_ref":null,"extra_headers":{},"method_id":null}}`},
		{"auth null", `{"auth":null}`, `{}`},
		{"metadata", `{"metadata":{"open_id":"o"}}`, `{"channel_context":{"open_id":"o"}}`},
		{"metadata beside a context", `{"channel_context":{"a":1},"metadata":{"a":2,"b":3}}`, `{"channel_context":{"a":1,"b":3}}`},
		{"metadata of the wire", `{"metadata":{"_e2a_wire_legacy_agent_response":1,"_e2a_wire_legacy_agent_chunk":1,"_jiuwenswarm_server_push":1,"_jiuwenswarm_cancel_source":1,"_x":1}}`, `{"channel_context":{"_x":1}}`},
		{"app_id", `{"app_id":"app","channel_context":{"a":1}}`, `{"channel_context":{"a":1,"app_id":"app"}}`},
		{"app_id behind metadata", `{"app_id":"app","metadata":{"app_id":"m"}}`, `{"channel_context":{"app_id":"m"}}`},
		{"app_id of nothing", `{"app_id":""}`, `{}`},
		{"channel", `{"channel":"web","channel_id":"old"}`, `{"channel":"web"}`},
		{"channel_id", `{"channel_id":"old"}`, `{"channel":"old"}`},
		{"channel null", `{"channel":null,"channel_id":"old"}`, `{"channel":"old"}`},
		{"channel empty", `{"channel":"","channel_id":"old"}`, `{"channel":""}`},
		{"method", `{"method":"chat.send","req_method":"old"}`, `{"method":"chat.send"}`},
		{"req_method", `{"req_method":"history.get"}`, `{"method":"history.get"}`},
		{"method empty", `{"method":"","req_method":"old"}`, `{"method":""}`},
		{"timestamp", `{"timestamp":"yesterday"}`, `{"timestamp":"yesterday"}`},
		{"timestamp with a fraction", `{"timestamp":1774524781.15}`, `{"timestamp":"2026-03-26T11:33:01.150000+00:00"}`},
		{"timestamp 0", `{"timestamp":0}`, `{"timestamp":"1970-01-01T00:00:00+00:00"}`},
		{"timestamp before 1970", `{"timestamp":-1.5}`, `{"timestamp":"1969-12-31T23:59:58.500000+00:00"}`},
		{"timestamp true", `{"timestamp":true}`, `{"timestamp":"1970-01-01T00:00:01+00:00"}`},
		{"agent_id", `{"agent_id":" a ","source_agent_id":"s"}`, `{"agent_id":"a","source_agent_id":"s"}`},
		{"agent_id from source_agent_id", `{"agent_id":"  ","source_agent_id":" s "}`, `{"agent_id":"s","source_agent_id":" s "}`},
		{"agent_ref is no agent_id", `{"agent_ref":{"agent_id":"a"}}`, `{"agent_ref":{"agent_id":"a"}}`},
		{"agent_ref of nothing", `{"agent_ref":{}}`, `{"agent_ref":{}}`},
		{"service_id", `{"service_id":" s "}`, `{"service_id":"s"}`},
		{"workspace_key", `{"workspace_key":" k ","workspace_dir":"d"}`, `{"workspace_key":"k"}`},
		{"workspace_dir", `{"workspace_dir":" d "}`, `{"workspace_key":"d"}`},
		{"is_stream", `{"is_stream":1}`, `{"is_stream":true}`},
		{"is_stream of nothing", `{"is_stream":0}`, `{}`},
		{"is_stream as text", `{"is_stream":"false"}`, `{"is_stream":true}`},
		{"output modes", `{"expected_output_modes":["text/plain",5]}`, `{"expected_output_modes":["text/plain","5"]}`},
		{"output modes null", `{"expected_output_modes":null}`, `{}`},
		{"metadata of protocols", `{"a2a_metadata":{"a":1},"acp_meta":null}`, `{"a2a_metadata":{"a":1}}`},
		{
			"ids", `{"request_id":"r","correlation_id":"c","task_id":"t","context_id":"x","session_id":"s","message_id":"m","user_id":"u","chat_id":"h","ext_method":"e","session_update_kind":"plan"}`,
			`{"chat_id":"h","context_id":"x","correlation_id":"c","ext_method":"e","message_id":"m","request_id":"r","session_id":"s","session_update_kind":"plan","task_id":"t","user_id":"u"}`,
		},
		{"ids as numbers", `{"user_id":12345678901234567890,"jsonrpc_id":1.0}`, `{"jsonrpc_id":1.0,"user_id":"12345678901234567890"}`},
		{"jsonrpc_id as text", `{"jsonrpc_id":"7"}`, `{"jsonrpc_id":"7"}`},
		{"unknown keys", `{"colour":"red"}`, `{}`},
		{"another version", `{"protocol_version":"2.0"}`, `{"protocol_version":"2.0"}`},
		{
			"early names", `{"request_id":"req_legacy_1","channel_id":"feishu","session_id":"s1","req_method":"chat.send","is_stream":true,"timestamp":1774524781.15,"params":{"query":"q"},"metadata":{"feishu_open_id":"ou"}}`,
			`{"channel":"feishu","channel_context":{"feishu_open_id":"ou"},"is_stream":true,"method":"chat.send","params":{"query":"q"},"request_id":"req_legacy_1","session_id":"s1","timestamp":"2026-03-26T11:33:01.150000+00:00"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := DecodeEnvelope([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var empty Envelope
			if err := json.Unmarshal([]byte(emptyEnvelope), &empty); err != nil {
				t.Fatal(err)
			}
			if got := members(t, e, empty); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			checkRoundTrip(t, e)
		})
	}
}

// checkRoundTrip checks that an envelope is the same after it has been written and read, apart from
// the agent_id that is filled in.
func checkRoundTrip(t *testing.T, e Envelope) {
	t.Helper()
	line, err := Line(e)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeEnvelope(line)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := Line(back); err != nil || string(second) != string(line) {
		t.Errorf("%v\n%s", err, cmp.Diff(string(line), string(second)))
	}
}

func TestEnvelopeErrors(t *testing.T) {
	for in, field := range map[string]string{
		`{"identity_origin":"robot"}`: "identity_origin", `{"identity_origin":5}`: "identity_origin", `{"params":[1]}`: "params", `{"params":"x"}`: "params",
		`{"auth":"x"}`: "auth", `{"auth":{"bearer_token":{}}}`: "auth.bearer_token", `{"timestamp":1e300}`: "timestamp", `{"timestamp":[]}`: "timestamp",
		`{"session_id":{}}`: "session_id", `{"jsonrpc_id":true}`: "jsonrpc_id", `{"agent_ref":"x"}`: "agent_ref", `{"expected_output_modes":"x"}`: "expected_output_modes",
		`{"channel_context":[1]}`: "channel_context", `{"timestamp":1e999}`: "timestamp",
	} {
		_, err := DecodeEnvelope([]byte(in))
		var wrong *FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v, want one of %s", in, err, field)
		}
	}
	for _, in := range []string{``, `null`, `[]`, `{} {}`, `{`, `5`} {
		if _, err := DecodeEnvelope([]byte(in)); err == nil {
			t.Errorf("%q was read", in)
		}
	}
}

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte(emptyEnvelope))
	f.Add([]byte(`{"binding":{"value":"a2a"},"payload":{"a":1},"metadata":{"x":[]},"timestamp":1774524781.15,"auth":{}}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		e, err := DecodeEnvelope(doc)
		if err != nil {
			return
		}
		line, err := Line(e)
		if err != nil {
			t.Fatalf("%q: %v", doc, err)
		}
		if strings.Count(string(line), "\n") != 1 {
			t.Fatalf("more than a line: %q", line)
		}
		back, err := DecodeEnvelope(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if second, err := Line(back); err != nil || string(second) != string(line) {
			t.Fatalf("%v\n%s\n%s", err, line, second)
		}
		_ = ACPPromptParams(e)
	})
}
