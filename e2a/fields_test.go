package e2a

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sample returns a value for a member that differs from its default.
func sample(t *testing.T, name string, empty any) any {
	t.Helper()
	switch name {
	case "identity_origin":
		return "system"
	case "provenance":
		return object(t, `{"source_protocol":"a2a","converter":"c","converted_at":"t","details":{"d":[1]}}`)
	case "auth":
		return object(t, `{"method_id":"m","bearer_token":"b","api_key_ref":"k","credential_ref":"c","extra_headers":{"X":"1"},"_meta":{"a":1}}`)
	case "agent_ref":
		return object(t, `{"id":"a","n":1}`)
	case "jsonrpc_id":
		return json.Number("7")
	case "timestamp":
		return "2026-03-28T12:00:00Z"
	}
	switch empty.(type) {
	case bool:
		return true
	case json.Number:
		return json.Number("3")
	case []any:
		return []any{"text/plain"}
	case map[string]any:
		return object(t, `{"k":{"n":[1,2.50]}}`)
	}
	return "x" // strings, and members whose default is null
}

// Each member of an envelope (e2a.md 1.1) comes back unchanged in both directions and affects no
// other member, with one exception.
func TestEveryField(t *testing.T) {
	for name, of := range map[string]struct {
		empty string
		again func([]byte) (any, error)
	}{
		"envelope": {emptyEnvelope, func(line []byte) (any, error) { return DecodeEnvelope(line) }},
	} {
		defaults := object(t, of.empty)
		for member, empty := range defaults {
			data := object(t, of.empty)
			data[member] = sample(t, member, empty)
			if cmp.Equal(data[member], empty) {
				t.Fatalf("%s.%s: the sample is the default", name, member)
			}
			in, err := json.Marshal(data)
			if err != nil {
				t.Fatal(err)
			}
			v, err := of.again(in)
			if err != nil {
				t.Errorf("%s.%s: %v", name, member, err)
				continue
			}
			out, err := Line(v)
			if err != nil {
				t.Fatal(err)
			}
			got := object(t, string(out))
			if member == "source_agent_id" && name == "envelope" { // it is filled in
				data["agent_id"] = "x"
			}
			if diff := cmp.Diff(data, got); diff != "" {
				t.Errorf("%s.%s:\n%s", name, member, diff)
			}
			// Alone, all other members have their defaults; a null member counts as missing.
			for _, doc := range []map[string]any{{member: data[member]}, {member: nil}} {
				in, err := json.Marshal(doc)
				if err != nil {
					t.Fatal(err)
				}
				v, err := of.again(in)
				if err != nil {
					if doc[member] == nil && member == "identity_origin" {
						continue // null is not a valid origin
					}
					t.Errorf("%s: %v", in, err)
					continue
				}
				out, err := Line(v)
				if err != nil {
					t.Fatal(err)
				}
				want := data
				if doc[member] == nil {
					want = defaults
				}
				if diff := cmp.Diff(want, object(t, string(out))); diff != "" {
					t.Errorf("%s of %s:\n%s", name, in, diff)
				}
			}
		}
	}
}

// The members of nested records (e2a.md 1.3) are written and read by name.
func TestNestedFields(t *testing.T) {
	for member, record := range map[string]string{
		"provenance": `{"source_protocol":"acp","converter":"c","converted_at":"t","details":{"a":{"b":1}}}`,
		"auth":       `{"method_id":"1","bearer_token":"2","api_key_ref":"3","credential_ref":"4","extra_headers":{"A":"5"},"_meta":{"b":6}}`,
	} {
		all := object(t, record)
		for field := range all {
			doc, err := json.Marshal(map[string]any{member: map[string]any{field: all[field]}})
			if err != nil {
				t.Fatal(err)
			}
			e, err := DecodeEnvelope(doc)
			if err != nil {
				t.Fatal(err)
			}
			line, err := Line(e)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := object(t, string(line))[member].(map[string]any)
			if !cmp.Equal(got[field], all[field]) {
				t.Errorf("%s.%s: %v", member, field, got[field])
			}
			for other := range all {
				if v := got[other]; other != field && !slices.ContainsFunc([]any{nil, "e2a", map[string]any{}}, func(empty any) bool { return cmp.Equal(v, empty) }) {
					t.Errorf("%s.%s has %s: %v", member, field, other, v)
				}
			}
		}
	}
}

// The lists of names (e2a.md 2), word for word.
func TestNameLists(t *testing.T) {
	var kinds []string
	for _, k := range ResponseKinds() {
		kinds = append(kinds, string(k))
	}
	for _, c := range []struct {
		got  []string
		want string
	}{
		{kinds, "e2a.complete e2a.chunk e2a.error acp.session_update acp.prompt_result acp.jsonrpc_error acp.output_request a2a.task a2a.message a2a.stream_event cron plan.approval_required ext"},
		{[]string{ProtocolE2A, ProtocolACP, ProtocolA2A}, "e2a acp a2a"},
		{[]string{string(Succeeded), string(Failed), string(InProgress)}, "succeeded failed in_progress"},
		{[]string{string(OriginSystem), string(OriginUser), string(OriginAgent), string(OriginService)}, "system user agent service"},
		{[]string{string(DeltaText), string(DeltaReasoning), string(DeltaTool), string(DeltaCustom)}, "text reasoning tool custom"},
	} {
		if got := strings.Join(c.got, " "); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
