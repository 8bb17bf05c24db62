package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// dialect describes how a Chat Completions server differs from OpenAI.
type dialect struct {
	oldLimit bool // the output limit is called max_tokens
	isOpenAI bool // OpenAI itself, or Azure: it accepts a prompt cache key
	strict   bool // unknown fields are refused, including stream_options; ids are nine letters and digits
}

// dialectOf returns the dialect of a server by its host. Unknown hosts get OpenAI's dialect.
func dialectOf(at string) dialect {
	u, err := url.Parse(at)
	if err != nil {
		return dialect{}
	}
	host := "." + u.Hostname()
	mistral := strings.HasSuffix(host, ".mistral.ai")
	return dialect{
		oldLimit: mistral || strings.HasSuffix(host, ".deepseek.com"), strict: mistral,
		isOpenAI: host == ".api.openai.com" || strings.HasSuffix(host, ".openai.azure.com"),
	}
}

// id returns a call's id in the form that the server accepts. It is the same for a call and its
// result.
func (d dialect) id(id string) string {
	const length = 9
	if !d.strict || len(id) == length && !strings.ContainsFunc(id, isNotAlphanumeric) {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:length]
}

func isNotAlphanumeric(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// Members of a message in which servers send reasoning. It is sent back in the same member: some
// servers require it, and strict ones refuse others.
const (
	inReasoningContent = "reasoning_content"
	inReasoningOnly    = "reasoning"
	inReasoningText    = "reasoning_text"
	inContent          = "content" // as blocks; not sent back, because not all models of such servers accept it
)

// memberOpaque returns the Opaque of reasoning that was received in a member. It is nil for
// reasoning_content, the default.
func memberOpaque(member string) json.RawMessage {
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

// chatText is the content of a message: a string, or a list of text and reasoning blocks. Reasoning
// may be such a list too.
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

// markCache sets cache marks in the system message and in the last two other messages, except tool
// messages, which not every server can mark. Claude models need such marks to cache anything. Only
// some proxies accept the marks, so the user has to enable them.
func markCache(req llm.Request, msgs []chatMessage) {
	if !wantsClaudeCache(req) || len(msgs) == 0 {
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

// wantsClaudeCache reports whether a request asks a Claude model behind a proxy to cache the prompt.
func wantsClaudeCache(req llm.Request) bool {
	return req.Retention != "" && req.Cached() && strings.Contains(strings.ToLower(req.Model), "claude")
}

// retained24h is the value with which OpenAI's APIs keep a prompt for a day.
const retained24h = "24h"

// retention returns the retention to request from OpenAI, or "". Only some models can keep prompts
// for a day. Small models, with one exception, refuse such a request.
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

// mark sets a cache mark at the end of a message's text; ok is false if there is no text.
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
