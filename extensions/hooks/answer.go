package hooks

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// looksLikeAnswer reports whether the output of a script looks like an answer to the event: JSON, or
// text that contains JSON or a value for a key of the answer, such as a denial after a line of a log.
// If eca cannot read such an output, the hook has failed. Other text is only shown.
func (h hook) looksLikeAnswer(stdout string) bool {
	if strings.HasPrefix(stdout, "{") {
		return true
	}
	keys := answerKeys(h.event)
	if len(keys) == 0 || h.Claude && slices.Contains([]Event{PreRequest, ChatStart, SubagentStart}, h.event) { // plain text is for the model
		return false
	}
	var value any
	if json.Unmarshal([]byte(stdout), &value) == nil {
		switch value.(type) {
		case string, bool, []any:
			return true
		}
	}
	for _, key := range keys {
		if regexp.MustCompile(`(?i)\b` + key + `["']?\s*[:=]`).MatchString(stdout) {
			return true
		}
	}
	for line := range strings.Lines(stdout) {
		line = strings.TrimSpace(line)
		if _, ok := parse(line); ok || h.event == PreToolCall && isRefusal(line) {
			return true
		}
	}
	return false
}

// mayDeny reports whether the output of a script that failed may have denied a call.
func (h hook) mayDeny(stdout string) bool {
	if o, ok := parse(stdout); ok {
		return len(o.problems) > 0 || strictness(o.Approval) >= strictness("ask")
	}
	return h.looksLikeAnswer(stdout)
}

// answerKeys returns the keys whose appearance in a text means that the script answers an event; none
// for events that hooks cannot affect.
func answerKeys(e Event) []string {
	const stops = "continue"
	switch e {
	case ChatStart, SubagentStart, PostCompact:
		return []string{stops, "additionalContext"}
	case PreCompact:
		return []string{stops}
	case PreRequest:
		return []string{stops, "additionalContext", "replacedPrompt"}
	case PostRequest, SubagentPostRequest:
		return []string{stops, "followUp"}
	case PreToolCall:
		return []string{stops, "additionalContext", "approval", "updatedInput", "decision", "permissionDecision"}
	case PostToolCall:
		return []string{stops, "additionalContext", replacesOutput}
	}
	return nil
}

// isRefusal reports whether a line is only a word that forbids or questions a call.
func isRefusal(line string) bool {
	switch strings.ToLower(strings.Trim(line, "'\"`.! ")) {
	case "ask", "block", "blocked", "cancel", "deny", "denied", "forbid", "forbidden", "refuse", "refused", "reject", "rejected":
		return true
	}
	return false
}
