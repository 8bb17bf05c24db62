package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// dialect is how a server of Chat Completions differs from OpenAI's own.
type dialect struct {
	oldLimit bool // the limit of the output is called max_tokens
	own      bool // OpenAI itself, or Azure: it takes a key for its cache of prompts
	strict   bool // what it does not know is refused: no stream_options; ids are nine letters and digits
}

// dialectOf knows servers by their host; compatible servers take what OpenAI takes.
func dialectOf(at string) dialect {
	u, err := url.Parse(at)
	if err != nil {
		return dialect{}
	}
	host := "." + u.Hostname()
	mistral := strings.HasSuffix(host, ".mistral.ai")
	return dialect{
		oldLimit: mistral || strings.HasSuffix(host, ".deepseek.com"), strict: mistral,
		own: host == ".api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"),
	}
}

// id is a call's id as the server takes it: the same for a call and its result.
func (d dialect) id(id string) string {
	const length = 9
	if !d.strict || len(id) == length && !strings.ContainsFunc(id, otherThanAlphanumeric) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:length]
}

func otherThanAlphanumeric(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// Members of a message in which servers send reasoning. It goes back in the same one:
// some demand it, and strict ones refuse any other.
const (
	inReasoningContent = "reasoning_content"
	inReasoningOnly    = "reasoning"
	inReasoningText    = "reasoning_text"
	inContent          = "content" // as blocks; it is not sent back: not all models of such a server take it
)

// reasoningIn is the Opaque of reasoning that came in another member than
// reasoning_content.
func reasoningIn(member string) json.RawMessage {
	if member == inReasoningContent || member == "" {
		return nil
	}
	raw, _ := json.Marshal(map[string]string{"member": member}) // strings always encode
	return raw
}

func memberOf(r llm.Reasoning) string {
	var o struct {
		Member string `json:"member"`
	}
	if len(r.Opaque) > 0 && json.Unmarshal(r.Opaque, &o) == nil && o.Member != "" {
		return o.Member
	}
	return inReasoningContent
}

// chatText is a content: a string, or a list of blocks of text and of reasoning, in
// which the reasoning may be a list itself.
type chatText struct{ text, reasoning string }

func (c *chatText) UnmarshalJSON(raw []byte) error {
	if raw[0] != '[' {
		return json.Unmarshal(raw, &c.text) // null leaves it empty
	}
	var blocks []struct {
		Text     string   `json:"text"`
		Thinking chatText `json:"thinking"`
	}
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return err
	}
	for _, b := range blocks {
		c.text += b.Text
		c.reasoning += b.Thinking.text
	}
	return nil
}

// markCache marks the system message and the last two messages of the others that can
// be marked, which tools' are not everywhere. Claude's models cache nothing else; only
// some servers take the marks, and pass them on, so that the user must want it.
func markCache(req llm.Request, msgs []chatMessage) {
	if !asksClaude(req) || len(msgs) == 0 {
		return
	}
	mark := req.Retention.Mark()
	if msgs[0].Role == "system" {
		if req.System != "" && req.SystemTail != "" {
			msgs[0].Content = []chatPart{{Type: "text", Text: req.System, CacheControl: mark}, {Type: "text", Text: req.SystemTail}}
		} else {
			msgs[0].mark(mark)
		}
		msgs = msgs[1:]
	}
	llm.MarkBackwards(len(msgs), 2, func(i int) bool { return msgs[i].Role != "tool" && msgs[i].mark(mark) })
}

// asksClaude says whether a Claude behind a proxy is asked to cache the prompt.
func asksClaude(req llm.Request) bool {
	return req.Retention != "" && req.Cached() && strings.Contains(strings.ToLower(req.Model), "claude")
}

// retained24h is how OpenAI's APIs are asked to keep a prompt for a day.
const retained24h = "24h"

// retention is what OpenAI's models are asked for with a long retention: those that can
// keep prompts for a day. The small ones cannot, with one exception, and would refuse.
func retention(req llm.Request) string {
	name := strings.ToLower(req.Model[strings.LastIndexByte(req.Model, '/')+1:])
	small := strings.Contains(name, "mini") || strings.Contains(name, "nano")
	if req.Retention != llm.RetainLong || !req.Cached() || small && name != "gpt-5.1-codex-mini" {
		return ""
	}
	if strings.HasPrefix(name, "gpt-4.1") || strings.HasPrefix(name, "gpt-5") {
		return retained24h
	}
	return ""
}

// mark puts a mark at the end of a message's text; ok is false without such a text.
func (m *chatMessage) mark(c *llm.CacheControl) (ok bool) {
	switch content := m.Content.(type) {
	case string:
		if content != "" {
			m.Content = []chatPart{{Type: "text", Text: content, CacheControl: c}}
			return true
		}
	case []chatPart:
		for i := len(content) - 1; i >= 0; i-- {
			if content[i].Type == "text" {
				content[i].CacheControl = c
				return true
			}
		}
	}
	return false
}
