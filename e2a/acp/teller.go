package acp

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
)

// teller makes session updates of frames (C2), of one turn or of a session's history. Its
// state is what later frames refer to.
type teller struct {
	agent   *agent
	session *session
	replay  bool // it is over: nothing is asked

	ask func(update object, s stage) // for permission
	// question asks what the model wants to know; it may have to end the turn for that.
	question func(q question) (ends bool, err error)
	ending   bool // it did: nobody needs to be told that the turn was stopped

	message string // id of the message that is being told; empty: the next text begins one
	last    string // text that was told last in the turn
	held    string // a notice that is told with the next frame: it may be the error that ends the turn
	calls   map[string]*shownCall
}

func (a *agent) teller(s *session) *teller {
	return &teller{agent: a, session: s, calls: map[string]*shownCall{}}
}

func (t *teller) update(kind string, what object) error {
	return t.agent.update(t.session, kind, what)
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

// tell tells a frame.
func (t *teller) tell(r e2a.Response) error {
	if r.Kind != e2a.KindChunk {
		return nil
	}
	if err := t.release(); err != nil {
		return err
	}
	kind, _ := r.Body["delta_kind"].(string)
	text, _ := r.Body["delta"].(string)
	switch e2a.DeltaKind(kind) {
	case e2a.DeltaText:
		return t.text("agent_message_chunk", text)
	case e2a.DeltaReasoning:
		t.message = ""
		what := object{"content": textBlock(text)}
		if id, _ := r.Body["reasoning_id"].(string); id != "" {
			what["messageId"] = id
		}
		return t.update("agent_thought_chunk", what)
	case e2a.DeltaTool:
		t.message = ""
		var stage stage
		if err := read(r.Body["delta"], &stage); err != nil {
			return err
		}
		return t.tool(stage)
	case e2a.DeltaCustom:
		kind, _ := r.Body["event_type"].(string)
		return t.custom(kind, r.Body["delta"])
	}
	return nil
}

// text tells a piece of a message of the model's.
func (t *teller) text(kind, text string) error {
	if t.message == "" {
		t.message = t.agent.opts.NewID()
	}
	if text != "" {
		t.last = text
	}
	return t.update(kind, object{"content": textBlock(text), "messageId": t.message})
}

// read reads a delta, which may hold values as the engine has them.
func read(delta, into any) error {
	raw, err := json.Marshal(delta)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// custom tells what has no kind of delta of its own.
func (t *teller) custom(kind string, delta any) error {
	var d struct {
		Text      string `json:"text"`
		Title     string `json:"title"`
		MessageID string `json:"message_id"`
		usage
	}
	if err := read(delta, &d); err != nil {
		return err
	}
	switch kind {
	case "user_message":
		t.message, t.last = "", ""
		if !t.replay {
			return nil // who said it knows it
		}
		what := object{"content": textBlock(d.Text)}
		if d.MessageID != "" {
			what["messageId"] = d.MessageID
		}
		return t.update("user_message_chunk", what)
	case "notice":
		return t.notice(d.Text)
	case "metadata":
		return t.session.named(d.Title, func() error { return t.update("session_info_update", object{"title": d.Title}) })
	case "usage":
		return t.usage(d.usage)
	case "compacted":
		return t.compacted()
	case "tasks":
		return t.update("plan", object{"entries": []any{}})
	case "question":
		var q question
		if err := read(delta, &q); err != nil || t.replay {
			return err
		}
		q.lead = t.lead()
		ends, err := t.question(q)
		t.ending = t.ending || ends
		return err
	}
	return nil
}

// notice tells what eca itself says.
func (t *teller) notice(text string) error {
	if text = strings.TrimSpace(text); text == "" || t.ending {
		return nil
	}
	if t.agent.client.Capabilities.Value.Session.Value.Notices != nil {
		if t.replay {
			return nil // they are for those who are there
		}
		return t.update("notice", object{"severity": "info", "title": text})
	}
	t.held = text
	if t.replay {
		return t.release()
	}
	return nil
}

// release tells the notice that is held.
func (t *teller) release() error {
	text := t.held
	if text == "" {
		return nil
	}
	t.held, t.message = "", ""
	text = t.lead() + text
	t.last = text
	return t.update("agent_message_chunk", object{"content": textBlock(text), "messageId": t.agent.opts.NewID()})
}

// end tells what is left when the turn has ended, with an error or without. Clients show the
// error themselves, some of them right behind the text, in a fence that must begin its line.
// Who cancelled a turn knows that it was stopped, and may be waiting for the next by now.
func (t *teller) end(failed error, cancelled bool) error {
	if cancelled {
		t.held = ""
		return nil
	}
	if failed != nil && t.held != "" && strings.Contains(asError(failed).Message, t.held) {
		t.held = ""
	}
	if err := t.release(); err != nil || failed == nil || t.last == "" || strings.HasSuffix(t.last, "\n") {
		return err
	}
	return t.text("agent_message_chunk", "\n\n")
}

// lead stands in front of what eca says: some clients put all messages of a turn in one.
func (t *teller) lead() string {
	if t.last != "" {
		return "\n\n"
	}
	return ""
}

// asked tells a question of before, by its call, as it was told: not to those who were asked
// in a form.
func (t *teller) asked(s stage) error {
	var args struct {
		Question string   `json:"question"`
		Options  []option `json:"options"`
	}
	if !t.replay || t.agent.hasForms() || toolName(s) != "eca__ask_user" {
		return nil
	}
	_ = json.Unmarshal(s.Arguments, &args) // what is malformed was no question
	if args.Question == "" {
		return nil
	}
	t.message = ""
	return t.text("agent_message_chunk", question{Text: args.Question, Options: args.Options, lead: t.lead()}.words())
}

// usage is what a request took.
type usage struct {
	Input      int64    `json:"input_tokens"`
	Output     int64    `json:"output_tokens"`
	CacheRead  int64    `json:"cache_read_tokens"`
	CacheWrite int64    `json:"cache_write_tokens"`
	Limit      int64    `json:"context_limit"`
	Cost       *float64 `json:"total_cost_usd"`
	Purpose    string   `json:"purpose"`
}

// usage tells how full the context is. Requests besides the conversation say nothing of
// that, and without a limit nobody can.
func (t *teller) usage(u usage) error {
	if u.Purpose != "" || u.Limit <= 0 {
		return nil
	}
	what := object{"used": max(0, u.Input+u.Output+u.CacheRead+u.CacheWrite), "size": u.Limit}
	if u.Cost != nil {
		what["cost"] = object{"amount": *u.Cost, "currency": "USD"}
	}
	return t.update("usage_update", what)
}

func (t *teller) compacted() error {
	if t.agent.client.Capabilities.Value.Session.Value.Compaction == nil {
		return nil
	}
	return t.update("compaction_update", object{"compactionId": t.agent.opts.NewID(), "status": "completed"})
}
