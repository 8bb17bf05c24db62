package e2a

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"
)

// fields reads the members of an object and keeps the first that is wrong.
type fields struct {
	data map[string]any
	err  *FieldError
}

func (f *fields) failed() error {
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

// text reads a string. Numbers and booleans are taken for what they are written as: ids of
// some platforms are numbers.
func (f *fields) text(key string) *string {
	switch v := f.data[key].(type) {
	case nil:
		return nil
	case map[string]any, []any:
		f.fail(key, "expected a string")
		return nil
	default:
		s := plain(v)
		return &s
	}
}

func (f *fields) textOr(key, fallback string) string {
	if s := f.text(key); s != nil {
		return *s
	}
	return fallback
}

// first reads the first of some keys that is there and not null.
func (f *fields) first(keys ...string) *string {
	for _, key := range keys {
		if s := f.text(key); s != nil {
			return s
		}
	}
	return nil
}

// trimmed reads the first of some keys that says something.
func (f *fields) trimmed(keys ...string) *string {
	for _, key := range keys {
		if s, ok := f.data[key].(string); ok {
			if s = strings.TrimSpace(s); s != "" {
				return &s
			}
		}
	}
	return nil
}

// id reads a JSON-RPC id.
func (f *fields) id(key string) any {
	switch v := f.data[key].(type) {
	case nil, string, json.Number:
		return v
	case float64:
		return json.Number(plain(v))
	}
	f.fail(key, "expected a string or a number")
	return nil
}

func (f *fields) origin(fallback IdentityOrigin) IdentityOrigin {
	switch v := f.data["identity_origin"].(type) {
	case nil:
		return fallback
	case string:
		switch o := IdentityOrigin(v); o {
		case OriginSystem, OriginUser, OriginAgent, OriginService:
			return o
		}
		f.fail("identity_origin", "%q is none of system, user, agent, service", v)
	default:
		f.fail("identity_origin", "expected a string")
	}
	return fallback
}

// object reads an object; what says nothing is an empty one.
func (f *fields) object(key string) map[string]any {
	v := f.data[key]
	if o, ok := v.(map[string]any); ok {
		return maps.Clone(o)
	}
	if truthy(v) {
		f.fail(key, "expected an object")
	}
	return nil
}

func (f *fields) agentRef() map[string]any {
	if f.data["agent_ref"] == nil {
		return nil
	}
	o, ok := f.data["agent_ref"].(map[string]any)
	if !ok {
		f.fail("agent_ref", "expected an object")
		return nil
	}
	out := maps.Clone(o)
	if out == nil {
		out = map[string]any{}
	}
	return out
}

func (f *fields) texts(key string) []string {
	v := f.data[key]
	if v == nil {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		f.fail(key, "expected a list")
		return nil
	}
	out := make([]string, len(list))
	for i, item := range list {
		out[i] = plain(item)
	}
	return out
}

// params reads params, and behind them what an older top-level payload adds: what says
// something and is not there yet.
func (f *fields) params() map[string]any {
	params := f.object("params")
	payload, _ := f.data["payload"].(map[string]any)
	for key, v := range payload {
		if _, there := params[key]; there || isEmpty(v) {
			continue
		}
		if params == nil {
			params = map[string]any{}
		}
		params[key] = v
	}
	return params
}

// isEmpty says whether a value is null, a list or an object with nothing in it.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// channelContext reads channel_context, then what older metadata and app_id add to it.
// They are merged in although it says something already: the reference's document has it
// otherwise, its code and tests do not (contract 9).
func (f *fields) channelContext() map[string]any {
	context := f.object("channel_context")
	add := func(key string, v any) {
		if _, there := context[key]; there {
			return
		}
		if context == nil {
			context = map[string]any{}
		}
		context[key] = v
	}
	metadata, _ := f.data["metadata"].(map[string]any)
	for key, v := range metadata {
		if !internalMetadata(key) {
			add(key, v)
		}
	}
	if app := f.data["app_id"]; truthy(app) {
		add("app_id", app)
	}
	return context
}

func (f *fields) auth() *Auth {
	v := f.data["auth"]
	if v == nil {
		return nil
	}
	data, ok := v.(map[string]any)
	if !ok {
		f.fail("auth", "expected an object")
		return nil
	}
	in := &fields{data: data}
	a := &Auth{
		MethodID: in.text("method_id"), BearerToken: in.text("bearer_token"), APIKeyRef: in.text("api_key_ref"),
		CredentialRef: in.text("credential_ref"), Meta: in.object("_meta"),
	}
	for name, value := range in.object("extra_headers") {
		if a.ExtraHeaders == nil {
			a.ExtraHeaders = map[string]string{}
		}
		a.ExtraHeaders[name] = plain(value)
	}
	if in.err != nil {
		f.fail("auth."+in.err.Field, "%s", in.err.Reason)
	}
	return a
}

// timestamp reads a time: text as it is, seconds since 1970 as RFC 3339.
func (f *fields) timestamp() *string {
	var seconds float64
	switch v := f.data["timestamp"].(type) {
	case nil:
		return nil
	case string:
		return &v
	case bool:
		if v {
			seconds = 1
		}
	case float64:
		seconds = v
	case json.Number:
		n, err := v.Float64()
		if err != nil {
			f.fail("timestamp", "%s is out of range", v)
			return nil
		}
		seconds = n
	default:
		f.fail("timestamp", "expected a string or a number")
		return nil
	}
	const year10000 = 253402300800
	if !(math.Abs(seconds) < year10000) || seconds < -62135596800 {
		f.fail("timestamp", "%v is out of range", seconds)
		return nil
	}
	s := stamp(time.UnixMicro(int64(math.RoundToEven(seconds * 1e6))))
	return &s
}

// stamp writes a time as the reference does: UTC with its offset, microseconds where there
// are any.
func stamp(t time.Time) string {
	layout := "2006-01-02T15:04:05-07:00"
	if t.Nanosecond()/1000 != 0 {
		layout = "2006-01-02T15:04:05.000000-07:00"
	}
	return t.UTC().Format(layout)
}

// sequence reads a number; what is none counts as 0.
func (f *fields) sequence() int64 {
	switch v := f.data["sequence"].(type) {
	case bool:
		if v {
			return 1
		}
	case float64:
		if !math.IsNaN(v) {
			return f.whole(big.NewFloat(v))
		}
	case json.Number:
		if n, _, err := big.ParseFloat(string(v), 10, 64, big.ToZero); err == nil {
			return f.whole(n)
		}
	case string:
		if n, ok := new(big.Int).SetString(strings.TrimSpace(v), 10); ok && n.IsInt64() {
			return n.Int64()
		}
	}
	return 0
}

func (f *fields) whole(n *big.Float) int64 {
	i, _ := n.Int64()
	if n.IsInf() || n.Cmp(new(big.Float).SetInt64(math.MaxInt64)) > 0 || n.Cmp(new(big.Float).SetInt64(math.MinInt64)) < 0 {
		f.fail("sequence", "out of range")
		return 0
	}
	return i
}

// truthy says whether Python would take a value for true.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case float64:
		return v != 0
	case json.Number:
		n, err := v.Float64()
		return err != nil || n != 0
	}
	return !isEmpty(v)
}

// plain writes a value as text: strings as they are, everything else as JSON.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// one returns the only key of an object that is one of some.
func one(o map[string]any, of []string) (string, bool) {
	found := slices.DeleteFunc(slices.Clone(of), func(key string) bool { _, ok := o[key]; return !ok })
	if len(found) != 1 {
		return "", false
	}
	return found[0], true
}
