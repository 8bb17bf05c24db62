package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Asker shows questions to the user.
type Asker interface {
	// Ask waits for the answer. cancelled reports that the user closed the question.
	Ask(ctx context.Context, q Question) (answer string, cancelled bool, err error)
}

// Question is a question to the user.
type Question struct {
	ChatID, CallID string // the call that caused it
	Text           string
	Options        []Option
	Freeform       bool // the user may also type another answer
}

// Option is one of the answers to choose from.
type Option struct{ Label, Description string }

// Answers with a special meaning in a form.
const (
	declineLabel = "Decline"
	emptyLabel   = "Leave empty"
	acceptLabel  = "Continue"
)

// maxTries limits how often the user is asked for one field.
const maxTries = 5

// maxQuestionText limits the bytes of a server's text in a question.
const maxQuestionText = 4000

// elicitResult is the result of elicitation/create.
type elicitResult struct {
	Action  string          `json:"action"` // accept, decline or cancel
	Content *map[string]any `json:"content,omitempty"`
}

// elicit asks the user for the data that a server requests, one field at a time. It refuses requests
// outside calls, because the user would not know the reason for such a question.
func (u responder) elicit(ctx context.Context, r ServerRequest) (any, error) {
	var p struct {
		pageRequest
		Schema json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, &jsonrpc.Error{Code: wire.INVALID_PARAMS, Message: "cannot read the parameters: " + err.Error()}
	}
	var f form
	var err error
	switch p.Mode {
	case "", "form":
		f, err = readForm(p.Schema)
	case "url":
		_, err = parsePage(p.URL)
	default:
		err = fmt.Errorf("the mode %.20q is not supported, only form and url", p.Mode)
	}
	if err != nil {
		return nil, &jsonrpc.Error{Code: wire.INVALID_PARAMS, Message: err.Error()}
	}
	asker := u.asker()
	if len(r.Calls) == 0 || asker == nil {
		return elicitResult{Action: "decline"}, nil
	}
	call := r.Calls[len(r.Calls)-1]
	defer call.pauseTimer()()
	var content map[string]any
	var action string
	if p.Mode == "url" {
		action, err = u.elicitPage(ctx, asker, r, call, p.pageRequest)
	} else {
		i := interview{asker: asker, server: r.Server, call: call, message: displayText(p.Message, maxQuestionText)}
		content, action, err = i.fill(ctx, f)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		u.deps.Log.Warn("cannot ask the user an MCP server's question", "server", r.Server, "err", err)
		action = "decline"
	}
	if action != "accept" || p.Mode == "url" {
		return elicitResult{Action: action}, nil
	}
	return elicitResult{Action: action, Content: &content}, nil
}

// asker returns the Asker, or nil if there is no user to ask.
func (u responder) asker() Asker {
	if u.deps.Asker == nil {
		return nil
	}
	return u.deps.Asker()
}

// interview fills in a form with the user.
type interview struct {
	asker   Asker
	server  string
	call    ActiveCall
	message string
}

func (i interview) fill(ctx context.Context, f form) (content map[string]any, action string, err error) {
	if len(f.fields) == 0 {
		answer, cancelled, err := i.ask(ctx, i.intro(), false, Option{Label: acceptLabel}, i.decline())
		switch {
		case err != nil || cancelled:
			return nil, "cancel", err
		case answer == acceptLabel:
			return map[string]any{}, "accept", nil
		}
		return nil, "decline", nil
	}
	content = map[string]any{}
	for n, field := range f.fields {
		head := i.intro() + "\n\n"
		if n > 0 {
			head = fmt.Sprintf("The MCP server `%s` continues (%d of %d): ", i.server, n+1, len(f.fields))
		} else if len(f.fields) > 1 {
			head += fmt.Sprintf("(1 of %d) ", len(f.fields))
		}
		value, given, action, err := i.askField(ctx, head, field)
		if err != nil || action != "accept" {
			return nil, action, err
		}
		if given {
			content[field.name] = value
		}
	}
	return content, "accept", nil
}

// intro names the server, so that its question cannot be mistaken for eca's.
func (i interview) intro() string {
	return fmt.Sprintf("The MCP server `%s` asks, for the call of %s:\n\n%s", i.server, i.call.Tool, i.message)
}

func (i interview) decline() Option {
	return Option{declineLabel, "Tell the server that you decline to answer"}
}

// askField asks for one field until the answer is valid, up to maxTries times.
func (i interview) askField(ctx context.Context, head string, f field) (value any, given bool, action string, err error) {
	text, wrong := head+f.describe(), ""
	options, freeform := f.answerOptions()
	for range maxTries {
		answer, cancelled, err := i.ask(ctx, wrong+text, freeform, append(slices.Clone(options), i.decline())...)
		switch {
		case err != nil || cancelled:
			return nil, false, "cancel", err
		case answer == declineLabel:
			return nil, false, "decline", nil
		case answer == emptyLabel && !f.required:
			return nil, false, "accept", nil
		}
		if value, err = f.parseAnswer(answer); err == nil {
			return value, true, "accept", nil
		}
		wrong = "This answer cannot be sent: " + err.Error() + ".\n\n"
	}
	return nil, false, "cancel", nil
}

func (i interview) ask(ctx context.Context, text string, freeform bool, options ...Option) (answer string, cancelled bool, err error) {
	return i.asker.Ask(ctx, Question{ChatID: i.call.ChatID, CallID: i.call.CallID, Text: text, Options: options, Freeform: freeform})
}

// describe describes a field for the user.
func (f field) describe() string {
	name := displayText(f.name, 200)
	if f.title != "" {
		name = displayText(f.title, 200)
	}
	var b strings.Builder
	b.WriteString("**" + name + "**")
	if f.description != "" {
		b.WriteString(": " + displayText(f.description, maxQuestionText))
	}
	var notes []string
	if f.kind == multiChoiceField {
		notes = append(notes, "any of "+displayText(f.labels(), maxQuestionText)+", with commas between them")
	}
	if f.kind == integerField {
		notes = append(notes, "a whole number")
	}
	if f.format != "" {
		notes = append(notes, "format: "+displayText(f.format, 50))
	}
	if limits := f.describeLimits(); limits != "" {
		notes = append(notes, limits)
	}
	if !f.required {
		notes = append(notes, "optional")
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, "; ") + ")")
	}
	return b.String()
}

// answerOptions returns the answers to choose from. freeform means that the user may type another one.
func (f field) answerOptions() (options []Option, freeform bool) {
	add := func(label string, preset bool) {
		o := Option{Label: label}
		if preset {
			o.Description = "the default"
		}
		options = append(options, o)
	}
	switch f.kind {
	case yesNoField:
		add("Yes", f.defaultValue == true)
		add("No", f.defaultValue == false)
	case choiceField:
		for _, c := range f.choices {
			add(displayText(c.label, 200), f.defaultValue == c.value)
		}
	default:
		freeform = true
		if f.defaultValue != nil {
			add(f.show(f.defaultValue), true)
		}
	}
	if !f.required {
		options = append(options, Option{Label: emptyLabel})
	}
	return options, freeform
}

// show formats a value in the form in which the user would type it.
func (f field) show(value any) string {
	switch v := value.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var labels []string
		for _, one := range v {
			for _, c := range f.choices {
				if c.value == one {
					labels = append(labels, c.label)
				}
			}
		}
		return strings.Join(labels, ", ")
	}
	return fmt.Sprint(value)
}
