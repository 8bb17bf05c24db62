package e2a

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// fields decodes the members of an object, and remembers the first error.
type fields struct {
	data Object
	err  *FieldError
}

func (f *fields) asError() error {
	if f.err == nil {
		return nil
	}
	return f.err
}

func (f *fields) fail(field, format string, args ...any) {
	if f.err == nil {
		f.err = &FieldError{field, fmt.Sprintf(format, args...)}
	}
}

// scalar reads a string, a number or a boolean as a string, or nil for null. It accepts numbers,
// because the ids of some chat services are numbers.
func (f *fields) scalar(key string) *string {
	v := f.data[key]
	switch {
	case jsonrpc.IsNull(v):
		return nil
	case v[0] == '{' || v[0] == '[':
		f.fail(key, "expected a string")
		return nil
	}
	s := stringOrJSON(v)
	return &s
}

func (f *fields) scalarOr(key, fallback string) string {
	if s := f.scalar(key); s != nil {
		return *s
	}
	return fallback
}

// firstScalar reads the first of several members that is not null, as scalar does.
func (f *fields) firstScalar(keys ...string) *string {
	for _, key := range keys {
		if s := f.scalar(key); s != nil {
			return s
		}
	}
	return nil
}

// firstTrimmed reads the first of several members that is a string and not blank, without surrounding
// white space. It skips numbers and other values.
func (f *fields) firstTrimmed(keys ...string) *string {
	for _, key := range keys {
		if s := asString(f.data[key]); s != nil && strings.TrimSpace(*s) != "" {
			return pointerTo(strings.TrimSpace(*s))
		}
	}
	return nil
}

// id reads a JSON-RPC id.
func (f *fields) id(key string) json.RawMessage {
	v := f.data[key]
	if jsonrpc.IsNull(v) {
		return nil
	}
	if strings.ContainsRune("{[tf", rune(v[0])) {
		f.fail(key, "expected a string or a number")
		return nil
	}
	return v
}

func (f *fields) origin(fallback IdentityOrigin) IdentityOrigin {
	v := f.data["identity_origin"]
	if jsonrpc.IsNull(v) {
		return fallback
	}
	s := asString(v)
	if s == nil {
		f.fail("identity_origin", "expected a string")
		return fallback
	}
	o := IdentityOrigin(*s)
	if !slices.Contains([]IdentityOrigin{OriginSystem, OriginUser, OriginAgent, OriginService}, o) {
		f.fail("identity_origin", "%q must be one of system, user, agent, service", *s)
		return fallback
	}
	return o
}

// object reads an object. It reads other values that Python treats as false, such as "" and 0, as an
// empty object, because the first implementation accepts them.
func (f *fields) object(key string) Object {
	o := asObject(f.data[key])
	if o == nil && truthy(f.data[key]) {
		f.fail(key, "expected an object")
	}
	return o
}

func (f *fields) agentRef() json.RawMessage {
	v := f.data["agent_ref"]
	if jsonrpc.IsNull(v) {
		return nil
	}
	if asObject(v) == nil {
		f.fail("agent_ref", "expected an object")
	}
	return v
}

func (f *fields) stringList(key string) []string {
	if jsonrpc.IsNull(f.data[key]) {
		return nil
	}
	list, ok := asList(f.data[key])
	if !ok {
		f.fail(key, "expected a list")
	}
	var out []string
	for _, item := range list {
		out = append(out, stringOrJSON(item))
	}
	return out
}

// params reads the member "params", and adds what only the older member "payload" has. Members of
// payload that are null, an empty list or an empty object are dropped.
func (f *fields) params() Object {
	payload := asObject(f.data["payload"])
	maps.DeleteFunc(payload, func(_ string, v json.RawMessage) bool { return isEmpty(v) })
	return merge(payload, f.object("params"))
}

// channelContext reads channel_context, and adds what only the older members metadata and app_id have.
// It adds this even if channel_context is not empty. The code and the tests of the first
// implementation do this too; its document does not (see docs/contracts/e2a.md, section 9).
func (f *fields) channelContext() Object {
	metadata := asObject(f.data["metadata"])
	maps.DeleteFunc(metadata, func(key string, _ json.RawMessage) bool { return internalMetadata(key) })
	context := merge(metadata, f.object("channel_context"))
	if _, ok := context["app_id"]; !ok && truthy(f.data["app_id"]) {
		context["app_id"] = f.data["app_id"]
	}
	return context
}

func (f *fields) auth() *Auth {
	if jsonrpc.IsNull(f.data["auth"]) {
		return nil
	}
	data := asObject(f.data["auth"])
	if data == nil {
		f.fail("auth", "expected an object")
		return nil
	}
	in := &fields{data: data}
	a := &Auth{
		MethodID: in.scalar("method_id"), BearerToken: in.scalar("bearer_token"), APIKeyRef: in.scalar("api_key_ref"),
		CredentialRef: in.scalar("credential_ref"), Meta: in.object("_meta"),
	}
	for name, value := range in.object("extra_headers") {
		if a.ExtraHeaders == nil {
			a.ExtraHeaders = map[string]string{}
		}
		a.ExtraHeaders[name] = stringOrJSON(value)
	}
	if in.err != nil {
		f.fail("auth."+in.err.Field, "%s", in.err.Reason)
	}
	return a
}

// timestamp reads a time. It returns a string unchanged, and formats a number, which is in seconds
// since 1970.
func (f *fields) timestamp() *string {
	v := f.data["timestamp"]
	if jsonrpc.IsNull(v) {
		return nil
	}
	if s := asString(v); s != nil {
		return s
	}
	seconds, ok := number(v)
	if !ok {
		f.fail("timestamp", "expected a string or a number within range, not %.40s", v)
		return nil
	}
	const year1, year10000 = -62135596800, 253402300800
	if seconds < year1 || seconds >= year10000 {
		f.fail("timestamp", "%v is out of range", seconds)
		return nil
	}
	s := formatTime(time.UnixMicro(int64(math.RoundToEven(seconds * 1e6))))
	return &s
}

// formatTime formats a time as the first implementation does: UTC as +00:00, with microseconds
// unless they are 0.
func formatTime(t time.Time) string {
	layout := "2006-01-02T15:04:05-07:00"
	if t.Nanosecond()/1000 != 0 {
		layout = "2006-01-02T15:04:05.000000-07:00"
	}
	return t.UTC().Format(layout)
}

// number reads a number, or a boolean as 1 or 0. ok is false for other values, and for numbers out of
// range.
func number(v json.RawMessage) (n float64, ok bool) {
	switch string(v) {
	case "true":
		return 1, true
	case "false":
		return 0, true
	}
	n, err := strconv.ParseFloat(string(v), 64)
	return n, err == nil
}

// truthy reports whether Python treats a value as true.
func truthy(v json.RawMessage) bool {
	if n, ok := number(v); ok {
		return n != 0
	}
	return !isEmpty(v) && string(v) != `""`
}

// isEmpty reports whether a value is null, an empty list or an empty object.
func isEmpty(v json.RawMessage) bool {
	list, isList := asList(v)
	o := asObject(v)
	return jsonrpc.IsNull(v) || isList && len(list) == 0 || o != nil && len(o) == 0
}

// asObject returns a value if it is an object, otherwise nil.
func asObject(v json.RawMessage) Object {
	var o Object
	if len(v) == 0 || v[0] != '{' || json.Unmarshal(v, &o) != nil {
		return nil
	}
	return o
}

func asList(v json.RawMessage) (list []json.RawMessage, ok bool) {
	if len(v) == 0 || v[0] != '[' {
		return nil, false
	}
	return list, json.Unmarshal(v, &list) == nil
}

// asString returns a value if it is a string, otherwise nil.
func asString(v json.RawMessage) *string {
	var s string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
		return nil
	}
	return &s
}

// stringOrJSON returns the content of a string, or the JSON of another value.
func stringOrJSON(v json.RawMessage) string {
	if s := asString(v); s != nil {
		return *s
	}
	return string(v)
}
