package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// output is the JSON output of a script (eca-features.md 18.1 and 18.2).
type output struct {
	SystemMessage     string
	SuppressOutput    bool
	Stop              bool
	StopReason        string
	AdditionalContext string
	ReplacedPrompt    *string
	FollowUp          string
	ReplacedOutput    *string
	Approval          string
	UpdatedInput      map[string]json.RawMessage

	// problems describes keys that are ignored although they were probably meant to have an effect.
	problems []string
	// notes describes other keys that eca does not know.
	notes []string
	// changesResult means that an unknown key was probably meant to change the result of a tool.
	changesResult bool
}

// outputKey is a key of the JSON output.
type outputKey struct {
	name, form string
	to         any
}

// parse parses a script's output; ok is false if it is not a JSON object. foreign are keys that the
// caller reads.
func parse(text string, foreign ...string) (o output, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil || fields == nil {
		return output{}, false
	}
	continues := true
	keys := []outputKey{
		{"systemMessage", "a string", &o.SystemMessage},
		{"suppressOutput", "true or false", &o.SuppressOutput},
		{"continue", "true or false", &continues},
		{"stopReason", "a string", &o.StopReason},
		{"additionalContext", "a string", &o.AdditionalContext},
		{"replacedPrompt", "a string", &o.ReplacedPrompt},
		{"followUp", "a string", &o.FollowUp},
		{"replacedOutput", "a string", &o.ReplacedOutput},
		{"approval", "allow, ask or deny", &o.Approval},
		{"updatedInput", "an object", &o.UpdatedInput},
	}
	known := slices.Clone(foreign)
	for _, f := range keys {
		known = append(known, f.name)
		raw, given := fields[f.name]
		if given && json.Unmarshal(raw, f.to) != nil {
			if text, ok := f.to.(**string); ok {
				*text = nil // a failed decoding leaves an empty text, which would replace the original
			}
			o.problems = append(o.problems, fmt.Sprintf("%s must be %s; it is ignored", f.name, f.form))
		}
	}
	o.Stop = !continues
	if !slices.Contains([]string{"", "allow", "ask", "deny"}, o.Approval) {
		o.problems = append(o.problems, fmt.Sprintf("approval is %q; it must be allow, ask or deny. It is ignored", o.Approval))
		o.Approval = ""
	}
	o.checkKeys(fields, known)
	return o, true
}

// fieldsFor keeps the fields that an event supports.
func (o output) fieldsFor(e Event) output {
	keep := output{Stop: o.Stop, problems: o.problems, notes: o.notes, changesResult: o.changesResult}
	switch e {
	case SessionStart, SessionEnd, ChatEnd, ChatStatusChanged:
		return keep // their output is not shown
	}
	keep.SystemMessage, keep.SuppressOutput, keep.StopReason = o.SystemMessage, o.SuppressOutput, o.StopReason
	switch e {
	case ChatStart, SubagentStart, PostCompact:
		keep.AdditionalContext = o.AdditionalContext
	case PreRequest:
		keep.AdditionalContext, keep.ReplacedPrompt = o.AdditionalContext, o.ReplacedPrompt
	case PostRequest, SubagentPostRequest:
		keep.FollowUp = o.FollowUp
	case PreToolCall:
		keep.AdditionalContext, keep.Approval, keep.UpdatedInput = o.AdditionalContext, o.Approval, o.UpdatedInput
	case PostToolCall:
		keep.AdditionalContext, keep.ReplacedOutput = o.AdditionalContext, o.ReplacedOutput
	}
	return keep
}

// effects lists what a script changed, for the user.
func (o output) effects() string {
	var lines []string
	add := func(name, text string) { lines = append(lines, name+": "+text) }
	if o.UpdatedInput != nil {
		raw, _ := json.Marshal(o.UpdatedInput)
		add("UpdatedInput", string(raw))
	}
	if o.Approval != "" {
		add("Approval", o.Approval)
	}
	if o.ReplacedPrompt != nil {
		add("ReplacedPrompt", *o.ReplacedPrompt)
	}
	if o.ReplacedOutput != nil {
		add("ReplacedOutput", *o.ReplacedOutput)
	}
	if o.AdditionalContext != "" {
		add("AdditionalContext", o.AdditionalContext)
	}
	if o.FollowUp != "" {
		add("FollowUp", o.FollowUp)
	}
	return strings.Join(lines, "\n")
}

// maxShown is how much of one text is shown to the user, in bytes: some clients drop long messages.
const maxShown = 8 << 10

func forDisplay(text string) string {
	if len(text) <= maxShown {
		return text
	}
	return strings.ToValidUTF8(text[:maxShown], "") + fmt.Sprintf("\n[cut: %d bytes in all]", len(text))
}
