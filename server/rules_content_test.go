package server_test

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// contentForms are the types of content with their roles and the keys that clients read
// unconditionally (eca-protocol.md 7).
var contentForms = map[string]struct{ roles, keys string }{
	"text":               {"user system assistant", "text"},
	"url":                {"assistant", "title url"},
	"image":              {"assistant user", "mediaType base64"},
	"progress":           {"system", "state text"},
	"usage":              {"system", "sessionTokens"},
	"reasonStarted":      {"assistant", "id"},
	"reasonText":         {"assistant", "id text"},
	"reasonFinished":     {"assistant", "id totalTimeMs"},
	"hookActionStarted":  {"system", "id name actionType"},
	"hookActionFinished": {"system", "id name actionType status"},
	"toolCallPrepare":    {"assistant", "id name server origin argumentsText"},
	"toolCallRun":        {"assistant", "id name server origin arguments manualApproval"},
	"toolCallRunning":    {"assistant", "id name server origin arguments"},
	"toolCalled":         {"assistant", "id name server origin arguments error outputs totalTimeMs"},
	"toolCallRejected":   {"assistant", "id name server origin arguments reason"},
	"tasks cleared":      {"assistant", "name server details"},
	"metadata":           {"system", "title"},
	"flag":               {"system", "text contentId"},
}

// content checks chat/contentReceived against the rules.
func (r *rules) content(body []byte, id string, params map[string]any) {
	chat := r.know(body, id)
	role, _ := params["role"].(string)
	c, _ := params["content"].(map[string]any)
	kind, _ := c["type"].(string)
	if kind == "toolCalled" && c["id"] == nil {
		kind = "tasks cleared" // the end of a call without a call (eca-protocol.md 7.4)
		if d, _ := c["details"].(map[string]any); c["name"] != "task" || len(d["tasks"].([]any)) != 0 {
			r.breaks(body, "toolCalled without an id says only that the tasks are gone")
		}
	}
	form, ok := contentForms[kind]
	if !ok || !slices.Contains(strings.Fields(form.roles), role) {
		r.breaks(body, "no such content from %s", role)
	}
	for _, key := range strings.Fields(form.keys) {
		if v, given := c[key]; !given || v == nil && key != "error" {
			r.breaks(body, "%s has no %s", kind, key)
		}
	}
	if ms, ok := c["totalTimeMs"].(float64); ok && ms < 1 {
		r.breaks(body, "a time of 0 is shown as a stray 0")
	}
	if _, child := params["parentChatId"]; child != strings.HasPrefix(id, "subagent-") {
		r.breaks(body, "parentChatId belongs to subagents' chats")
	}
	if chat.over && role == "assistant" {
		r.breaks(body, "a turn that has finished is not mute")
	}
	text, _ := c["text"].(string)
	switch {
	case kind == "text" && role == "user":
		chat.over = false
		if !chat.replay || chat.ends < chat.turns {
			chat.begin()
		}
		if c["contentId"] == nil || !strings.HasSuffix(text, "\n") {
			r.breaks(body, "an echo has a contentId and ends with a newline")
		}
	case kind == "text" && text == "":
		r.breaks(body, "empty text")
	case kind == "metadata":
		if title, _ := c["title"].(string); title == "" || utf8.RuneCountInString(title) > 40 || strings.Contains(title, "\n") {
			r.breaks(body, "a title has one line of up to 40 characters")
		}
	case kind == "usage":
		if limit, ok := c["limit"].(map[string]any); ok && (limit["context"] == nil || limit["output"] == nil) {
			r.breaks(body, "half a limit")
		}
	case kind == "progress":
		r.progress(body, chat, c["state"], text)
	case strings.HasPrefix(kind, "toolCall"):
		r.call(body, chat, kind, c)
	}
}

// progress counts the ends of turns: at most one for each turn, after its beginning, and after idle
// (eca-protocol.md 7.1, 8.1).
func (r *rules) progress(body []byte, chat *chatRules, state any, text string) {
	if (state == "running") != (text != "") || state != "running" && state != "finished" {
		r.breaks(body, "progress runs with a text and finishes without")
	}
	if state != "finished" {
		return
	}
	if chat.ends++; chat.ends > chat.turns || !chat.begun {
		r.breaks(body, "end %d of %d turns, begun: %v", chat.ends, chat.turns, chat.begun)
	}
	if chat.status != "idle" && chat.status != "login" {
		r.breaks(body, "the status in front of finished is %q, neither idle nor login", chat.status)
	}
	chat.begun, chat.over, chat.status = false, true, ""
}

// call checks the order of a tool call's stages, and that later stages repeat summary and details
// (eca-protocol.md 7.1).
func (r *rules) call(body []byte, chat *chatRules, kind string, c map[string]any) {
	id, _ := c["id"].(string)
	call := chat.calls[id]
	if call == nil {
		call = &callRules{}
		chat.calls[id] = call
	}
	if kind == "toolCallPrepare" {
		call.prepared = true
		if call.run {
			r.breaks(body, "a prepare behind the run, or an id twice in a chat")
		}
		return
	}
	details, _ := c["details"].(map[string]any)
	summary, _ := c["summary"].(string)
	if _, ok := c["arguments"].(map[string]any); !ok {
		r.breaks(body, "arguments are not an object")
	}
	switch {
	case !call.prepared:
		r.breaks(body, "no prepare in front")
	case call.ended:
		r.breaks(body, "the call has ended")
	case kind == "toolCallRun" && call.run:
		r.breaks(body, "a second run")
	case kind != "toolCallRun" && !call.run && kind != "toolCallRejected":
		r.breaks(body, "no run in front")
	case call.summary && summary == "" || call.details && details["type"] == nil:
		r.breaks(body, "summary or details are not repeated")
	}
	switch kind {
	case "toolCallRun":
		call.run, call.summary, call.details = true, summary != "", details != nil
		if d, ok := details["subagentChatId"].(string); ok {
			r.chat(d).known = true
			if !slices.Contains(chat.children, d) {
				chat.children = append(chat.children, d)
			}
		}
	case "toolCalled", "toolCallRejected":
		call.ended = true
	}
	if origin, _ := c["origin"].(string); !slices.Contains([]string{"native", "mcp", "server", "unknown"}, origin) {
		r.breaks(body, "no such origin")
	}
	reasons := []string{"", "userChoiceDeny", "userConfigDeny", "hookRejected", "userPromptStop", "userStop", "user"}
	if reason, _ := c["reason"].(string); !slices.Contains(reasons, reason) {
		r.breaks(body, "no such reason")
	}
	if diff, ok := details["diff"].(string); details["type"] == "fileChange" && (!ok || strings.HasPrefix(diff, "---") || strings.Contains(diff, "\n+++ ")) {
		r.breaks(body, "a diff comes without the names of its files (7.4)")
	}
}
