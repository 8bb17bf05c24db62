package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// transcript drives a rig and renders the messages, with normalised ids and times.
type transcript struct {
	*rig
	served *scripted
	mark   int
	chat   string
	with   json.RawMessage // contexts of the next prompt
	lines  []string        // answers to requests, by the number of messages heard before
	names  map[string]string
}

// step runs one line of a script:
//
//	prompt TEXT         chat/prompt without a chat id the first time, then on that chat
//	promptas ID TEXT    chat/prompt with an id
//	with JSON           contexts of the next prompt
//	finished N          wait until N turns have ended
//	await TYPE PIECE... wait for a content
//	approve ID | approve-session ID | reject ID | reject-go-on ID
//	call METHOD JSON    any request
//	notify METHOD JSON  any notification
//	heard METHOD PIECE... wait for any message
//	served TEXT         wait until the MCP server has heard it
//	answer METHOD JSON  how requests of the daemon are answered from now on
//	answers METHOD LIST how they are answered, one after the other
//	stop | trust TEXT | delete
func (s *transcript) step(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	prompt := func(params map[string]any) {
		var res struct{ ChatID string }
		raw := s.Call("chat/prompt", params)
		if err := json.Unmarshal(raw, &res); err != nil {
			t.Fatal(err)
		}
		s.chat = res.ChatID
		s.lines = append(s.lines, "result "+string(raw))
	}
	params := map[string]any{"message": rest}
	if s.chat != "" {
		params["chatId"] = s.chat
	}
	if s.with != nil && verb != "with" {
		params["contexts"], s.with = s.with, nil
	}
	decide := func(method string, extra map[string]any) {
		p := map[string]any{"chatId": s.chat, "toolCallId": rest}
		merge(p, extra)
		s.Notify(method, p)
	}
	switch verb {
	case "with":
		s.with = json.RawMessage(strings.ReplaceAll(rest, "$WS", s.root))
	case "prompt":
		prompt(params)
	case "trust":
		params["trust"] = true
		prompt(params)
	case "promptas":
		id, text, _ := strings.Cut(rest, " ")
		prompt(map[string]any{"chatId": id, "message": text})
	case "finished":
		n := 0
		fmt.Sscan(rest, &n)
		s.Await(s.mark, line, fake.Times(n, "chat/contentReceived", `"state":"finished"`))
	case "await":
		kind, pieces, _ := strings.Cut(rest, " ")
		s.Await(s.mark, line, fake.Content(kind, strings.Fields(pieces)...))
	case "call":
		method, params, _ := strings.Cut(rest, " ")
		s.lines = append(s.lines, "result "+string(s.Call(method, json.RawMessage(strings.ReplaceAll(params, "$WS", s.root)))))
	case "notify":
		method, params, _ := strings.Cut(rest, " ")
		s.Notify(method, json.RawMessage(strings.ReplaceAll(params, "$WS", s.root)))
	case "served":
		s.served.await(rest)
	case "heard":
		method, pieces, _ := strings.Cut(rest, " ")
		s.Await(0, line, fake.Contains(method, strings.Fields(pieces)...))
	case "answer":
		method, result, _ := strings.Cut(rest, " ")
		s.Answer(method, func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(result), nil })
	case "answers":
		method, results, _ := strings.Cut(rest, " ")
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(results), &list); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		s.Answer(method, func(context.Context, json.RawMessage) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(list) == 0 {
				return nil, errors.New("no answer is left")
			}
			next := list[0]
			list = list[1:]
			return next, nil
		})
	case "approve":
		decide("chat/toolCallApprove", nil)
	case "approve-session":
		decide("chat/toolCallApprove", map[string]any{"save": "session"})
	case "reject":
		decide("chat/toolCallReject", nil)
	case "reject-go-on":
		decide("chat/toolCallReject", map[string]any{"goOn": true})
	case "stop":
		s.Notify("chat/promptStop", map[string]any{"chatId": s.chat})
	case "delete":
		s.lines = append(s.lines, "result "+string(s.Call("chat/delete", map[string]any{"chatId": s.chat})))
	default:
		t.Fatalf("unknown step %q", line)
	}
}

// render returns the messages, one after the other. It merges deltas, because their boundaries
// depend on timing.
func (s *transcript) render(t *testing.T) string {
	t.Helper()
	var out []map[string]any
	for _, m := range s.Since(s.mark) {
		scoped := m.Method == "config/updated" && strings.Contains(string(m.Params), `"chatId"`)
		if !strings.HasPrefix(m.Method, "chat/") && !scoped {
			continue
		}
		var p map[string]any
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		p["method"] = strings.TrimPrefix(m.Method, "chat/")
		if n := len(out); n > 0 && mergeDelta(out[n-1], p) {
			continue
		}
		out = append(out, p)
	}
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(formatForDiff(s.normal(l)) + "\n")
	}
	for _, p := range inAnnouncedOrder(out) {
		method := p["method"]
		delete(p, "method")
		if c, ok := p["content"].(map[string]any); ok {
			for _, k := range []string{"totalTimeMs"} {
				if _, ok := c[k]; ok {
					c[k] = 0
				}
			}
			delete(c, "contextBreakdown") // has its own test
		}
		raw, err := marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, formatForDiff(fmt.Sprintf("%s %s", method, s.normal(raw))))
	}
	return b.String()
}

// mergeDelta adds a delta to the message before it.
func mergeDelta(last, next map[string]any) bool {
	a, ok1 := last["content"].(map[string]any)
	b, ok2 := next["content"].(map[string]any)
	if !ok1 || !ok2 || a["type"] != b["type"] || last["role"] != next["role"] || a["id"] != b["id"] || last["chatId"] != next["chatId"] {
		return false
	}
	field := map[any]string{"text": "text", "reasonText": "text", "toolCallPrepare": "argumentsText"}[a["type"]]
	if field == "" || a["type"] == "text" && last["role"] != "assistant" {
		return false
	}
	a[field] = a[field].(string) + b[field].(string)
	return true
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

// formatForDiff formats a message: a word and compact JSON. Long values have one key or element per
// line, so that the diff of a golden file is readable.
func formatForDiff(message string) string {
	word, raw, _ := strings.Cut(message, " ")
	if !json.Valid([]byte(raw)) {
		return message
	}
	var b strings.Builder
	b.WriteString(word + " ")
	layOut(&b, json.RawMessage(raw), "")
	return b.String()
}

func layOut(b *strings.Builder, raw json.RawMessage, indent string) {
	const width = 120
	if len(indent)+len(raw) <= width || raw[0] != '{' && raw[0] != '[' {
		b.Write(raw)
		return
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	_, _ = d.Token() // the JSON is valid, so this cannot fail
	b.WriteByte(raw[0])
	for n := 0; d.More(); n++ {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n  " + indent)
		if raw[0] == '{' {
			key, _ := d.Token()
			name, _ := marshal(key)
			b.WriteString(name + ": ")
		}
		var value json.RawMessage
		_ = d.Decode(&value)
		layOut(b, value, indent+"  ")
	}
	b.WriteString("\n" + indent + string(raw[len(raw)-1]))
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// The output of /context depends slightly on the names of folders; TestContextPicture checks the
// numbers.
var picture = regexp.MustCompile(`(?:[🟦🟪🟨🟫🟧🟥🟩⬜]{10}\\n){10}`)

var estimates = regexp.MustCompile(`(- [🟦🟪🟨🟫🟧🟥🟩] [^:\\]+): [\d,]+( \([\d.]+%\))?`)

var clock = regexp.MustCompile(`Resuming at \d\d:\d\d`)

// normal replaces parts that differ from run to run.
func (s *transcript) normal(line string) string {
	line = strings.ReplaceAll(line, s.root, "$WS")
	line = picture.ReplaceAllString(line, "(picture)\\n")
	line = estimates.ReplaceAllString(line, "$1: N")
	line = clock.ReplaceAllString(line, "Resuming at 00:00")
	return uuids.ReplaceAllStringFunc(line, func(id string) string {
		if s.names[id] == "" {
			s.names[id] = fmt.Sprintf("id-%d", len(s.names)+1)
		}
		return s.names[id]
	})
}

// renderRequests returns the requests to the model, without prompts and tools.
func (s *transcript) renderRequests(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.requests {
		var body map[string]any
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"instructions", "system", "systemInstruction", "tools", "toolConfig", "prompt_cache_key", "model", "store", "stream", "stream_options", "include", "parallel_tool_calls"} {
			delete(body, k)
		}
		if msgs, ok := body["messages"].([]any); ok && len(msgs) > 0 {
			if first, _ := msgs[0].(map[string]any); first["role"] == "system" {
				body["messages"] = msgs[1:]
			}
		}
		raw, err := marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&b, formatForDiff(r.path+" "+s.normal(raw)))
	}
	return b.String()
}
