package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// rules watch one connection and check the invariants of every message in every test: its form
// (eca-protocol.md 1.3, 2), that nothing comes before initialized, that the client knows every chat
// that is mentioned, and the order within a turn (eca-protocol.md 7.1, 8). They check the written
// bytes, one Write at a time.
type rules struct {
	methods map[string]protocol.Method // of the daemon

	mu           sync.Mutex // guards the fields below
	broken       []string
	began        bool              // the client has sent more messages than initialize
	openRequests map[string]string // methods of unanswered requests, by id
	chats        map[string]*chatRules
	nameless     int            // prompts without a chat id whose chat was not mentioned yet
	tasks        map[string]int // running tasks of $/progress
}

// chatRules is the state of the rules for one chat.
type chatRules struct {
	known  bool   // the client named the chat, or was sent its id
	turns  int    // turns that may have an end: prompts, and turns of other daemons
	ends   int    // ends of turns that were shown
	begun  bool   // the user's message or a running turn was shown since the last end
	replay bool   // the past is being shown, until there is a new event
	over   bool   // a turn has ended and no other has begun
	status string // since the last end
	calls  map[string]*callRules
	// Chats of subagents: their contents disappear when the chat is cleared.
	children []string
}

// reset forgets the calls that are not shown any more.
func (r *rules) reset(c *chatRules) {
	c.calls = map[string]*callRules{}
	for _, id := range c.children {
		r.reset(r.chat(id))
	}
}

// begin notes the beginning of a turn. A turn without a prompt belongs to another daemon.
func (c *chatRules) begin() {
	if !c.begun && c.ends == c.turns {
		c.turns++
	}
	c.begun, c.replay = true, false
}

type callRules struct {
	prepared, run, ended bool
	summary, details     bool // in toolCallRun
}

// newRules returns rules whose findings fail the test at its end.
func newRules(t testing.TB) *rules {
	r := &rules{methods: map[string]protocol.Method{}, openRequests: map[string]string{}, chats: map[string]*chatRules{}, tasks: map[string]int{}}
	for _, m := range protocol.Methods() {
		if m.Direction == protocol.ToClient {
			r.methods[m.Name] = m
		}
	}
	t.Cleanup(func() {
		for _, b := range r.findings() {
			t.Errorf("a rule of the protocol is broken: %s", b)
		}
	})
	return r
}

func (r *rules) findings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.broken[:min(len(r.broken), 10)])
}

func (r *rules) breaks(body []byte, format string, args ...any) {
	r.broken = append(r.broken, fmt.Sprintf(format, args...)+fmt.Sprintf("\n\tin %.2000s", body))
}

// trace gets the client's messages; it fits server.Options.Trace.
func (r *rules) trace(incoming bool, body []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []json.RawMessage
	switch {
	case !incoming:
	case json.Unmarshal(body, &list) == nil: // a batch
		for _, b := range list {
			r.recordSent(b)
		}
	default:
		r.recordSent(body)
	}
}

// recordSent records a message of the client.
func (r *rules) recordSent(body []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	if json.Unmarshal(body, &m) != nil || m.Method == "" {
		return
	}
	if len(m.ID) > 0 {
		r.openRequests[string(m.ID)] = m.Method
	}
	r.began = r.began || m.Method != "initialize" // requests before initialized are served
	var p protocol.ChatParams
	_, err := protocol.Decode(m.Params, &p)
	named := err == nil && p.ChatID != ""
	switch {
	case m.Method == "chat/prompt" && !named:
		r.nameless++
	case m.Method == "chat/prompt":
		r.chat(string(p.ChatID)).known = true
		r.chat(string(p.ChatID)).turns++
	case m.Method == "chat/open", m.Method == "chat/promptStop", m.Method == "chat/promptSteer":
		r.chat(string(p.ChatID)).known = true
	}
}

func (r *rules) chat(id string) *chatRules {
	if r.chats[id] == nil {
		r.chats[id] = &chatRules{calls: map[string]*callRules{}}
	}
	return r.chats[id]
}

// watchWrites returns a writer to the client that checks each Write against the rules.
func (r *rules) watchWrites(w io.Writer) io.Writer { return ruledWriter{r, w} }

type ruledWriter struct {
	rules *rules
	w     io.Writer
}

func (w ruledWriter) Write(frame []byte) (int, error) {
	w.rules.checkWritten(frame)
	return w.w.Write(frame)
}

// checkWritten checks a frame that the server wrote.
func (r *rules) checkWritten(frame []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, body, _ := bytes.Cut(frame, []byte("\r\n\r\n"))
	var compact bytes.Buffer
	switch {
	case string(head) != "Content-Length: "+strconv.Itoa(len(body)) || len(body) == 0:
		r.breaks(frame, "a write is not one message with one header")
	case !utf8.Valid(body) || json.Compact(&compact, body) != nil || compact.Len() != len(body):
		r.breaks(frame, "the body is not compact JSON in UTF-8")
	case body[0] == '[':
		var list []json.RawMessage
		_ = json.Unmarshal(body, &list)
		for _, b := range list {
			r.response(b)
		}
	case !r.response(body):
		r.message(body)
	}
}

// response checks an answer against the rules (eca-protocol.md 2.1, 12); it reports whether the
// body is an answer.
func (r *rules) response(body []byte) bool {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["method"] != nil {
		return false
	}
	method, owed := r.openRequests[string(m["id"])]
	delete(r.openRequests, string(m["id"]))
	result, ok := m["result"]
	if fault, failed := m["error"]; failed {
		var e struct {
			Code    *int
			Message string
		}
		if ok || json.Unmarshal(fault, &e) != nil || e.Code == nil || e.Message == "" {
			r.breaks(body, "an error needs a code, a message, and no result beside it")
		}
		if !owed && string(m["id"]) != "null" {
			r.breaks(body, "an answer that nobody waits for")
		}
		return true
	}
	if !ok || !owed {
		r.breaks(body, "an answer needs a result and a request")
		return true
	}
	var v any
	_ = json.Unmarshal(result, &v)
	r.nulls(body, method, "", v)
	if strings.HasPrefix(method, "chat/") { // a chat that an answer names is known
		for _, id := range chatIDs(v) {
			r.chat(id).known = true
		}
	}
	return true
}

// chatIDs returns the ids of the chats that a result names.
func chatIDs(v any) (ids []string) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			if id, ok := member.(string); ok && (key == "chatId" || key == "id" && v["messageCount"] != nil) {
				ids = append(ids, id)
			}
			if key == "chats" || key == "contents" {
				ids = append(ids, chatIDs(member)...)
			}
		}
	case []any:
		for _, e := range v {
			ids = append(ids, chatIDs(e)...)
		}
	}
	return ids
}

// allowedNulls are the only places where null is data (eca-protocol.md 2.1), by method and path.
// Values below a path with * do not belong to the protocol: a model's arguments, a tool's schema.
var allowedNulls = regexp.MustCompile(`^(` + strings.Join([]string{
	`shutdown `,
	`config/updated chat\.selectVariant`,
	`chat/query(Context|Files|Commands) chatId`,
	`chat/queryCommands commands\[\]\.arguments`,
	`chat/open selection\.(model|variant)`,
	`chat/(open|history) meta\.(before|after|compaction)Cursor`,
	`jobs/(list|updated) jobs\[\]\.(summary|exitCode)`,
	`jobs/readOutput (status|exitCode)`,
	`chat/contentReceived content\.arguments\..*`,
	`chat/history contents\[\]\.content\.arguments\..*`,
	`chat/contentReceived content\.error`,
	`chat/history contents\[\]\.content\.error`,
	`tool/serverUpdated tools\[\]\.parameters\..*`,
}, "|") + `)$`)

func (r *rules) nulls(body []byte, method, path string, v any) {
	switch v := v.(type) {
	case nil:
		if !allowedNulls.MatchString(method + " " + path) {
			r.breaks(body, "%s: null at %q", method, path)
		}
	case map[string]any:
		for key, member := range v {
			r.nulls(body, method, strings.TrimPrefix(path+"."+key, "."), member)
		}
	case []any:
		for _, e := range v {
			r.nulls(body, method, path+"[]", e)
		}
	}
}

// message checks a notification or a request against the rules.
func (r *rules) message(body []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params map[string]any
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Params == nil {
		r.breaks(body, "params are not an object: %v", err)
		return
	}
	if !r.began {
		r.breaks(body, "it comes before initialized")
	}
	switch method, ok := r.methods[m.Method]; {
	case !ok:
		r.breaks(body, "the protocol has no %s", m.Method)
		return
	case method.Request:
		if n, err := strconv.ParseInt(string(m.ID), 10, 64); err != nil || n < 1_000_000_000 {
			r.breaks(body, "a request's id may be a client's own")
		}
	case m.ID != nil:
		r.breaks(body, "a notification with an id")
	}
	r.nulls(body, m.Method, "", m.Params)
	id, _ := m.Params["chatId"].(string)
	switch m.Method {
	case "chat/contentReceived":
		r.content(body, id, m.Params)
	case "chat/opened":
		c := r.chat(id)
		c.known, c.over, c.replay = true, false, true
		r.reset(c)
	case "chat/deleted":
		r.chat(id).known = false
	case "chat/cleared":
		c := r.know(body, id)
		c.over, c.replay = false, true
		r.reset(c)
	case "chat/statusChanged":
		c := r.know(body, id)
		c.status, _ = m.Params["status"].(string)
		if !slices.Contains([]string{"running", "idle", "stopping", "login"}, c.status) {
			r.breaks(body, "no such status")
		}
		if c.status == "running" {
			c.begin()
		}
	case "config/updated":
		if id != "" {
			r.know(body, id)
		}
		if len(body) >= 60<<10 {
			r.breaks(body, "%d bytes: one client loses such messages", len(body))
		}
	case "chat/askQuestion":
		r.know(body, id)
	case "$/progress":
		r.task(body, fmt.Sprint(m.Params["taskId"]), m.Params["type"])
	}
}

// know checks that the client knows a chat that a message mentions.
func (r *rules) know(body []byte, id string) *chatRules {
	c := r.chat(id)
	if !c.known && r.nameless > 0 && id != "" {
		// The chat of a prompt without an id; its client takes the id from this message.
		r.nameless--
		c.known = true
		c.turns++
	}
	if !c.known {
		r.breaks(body, "the client does not know this chat")
	}
	return c
}

func (r *rules) task(body []byte, id string, kind any) {
	switch {
	case kind == "start": // again after a second initialized
		r.tasks[id]++
	case kind == "finish" && r.tasks[id] > 0:
		r.tasks[id]--
	default:
		r.breaks(body, "a task that did not start")
	}
}
