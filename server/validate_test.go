package server_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// validRequest checks a request against the documentation of its API: an invalid request would be
// refused, and block the chat.
func validRequest(api, body string) error { return wireTestOf(api).valid(body) }

// callsRule checks calls and their results: each id once, one result for each call, and a call
// before each result.
type callsRule struct {
	open []string
	seen map[string]bool
}

func (c *callsRule) call(id string) error {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if c.seen[id] {
		return fmt.Errorf("id %q is used twice", id)
	}
	c.seen[id] = true
	c.open = append(c.open, id)
	return nil
}

func (c *callsRule) result(id string) error {
	i := slices.Index(c.open, id)
	if i < 0 {
		return fmt.Errorf("the result of %q answers no open call", id)
	}
	c.open = slices.Delete(c.open, i, i+1)
	return nil
}

// checkAnswered checks that all calls so far have their results.
func (c *callsRule) checkAnswered() error {
	if len(c.open) > 0 {
		return fmt.Errorf("calls without result: %q", c.open)
	}
	return nil
}

func matches(what, s, pattern string) error {
	if !regexp.MustCompile(pattern).MatchString(s) {
		return fmt.Errorf("%s %.200q does not match %s", what, s, pattern)
	}
	return nil
}

func isObject(what string, raw json.RawMessage) error {
	var o map[string]any
	if json.Unmarshal(raw, &o) != nil || o == nil {
		return fmt.Errorf("%s is not an object: %s", what, raw)
	}
	return nil
}

func notBlank(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("blank text")
	}
	return nil
}

func isImage(mediaType, data string, types ...string) error {
	if raw, err := base64.StdEncoding.DecodeString(data); err != nil || len(raw) == 0 || !slices.Contains(types, mediaType) {
		return fmt.Errorf("not an image it takes: %s, %.40q", mediaType, data)
	}
	return nil
}

// alternate checks that roles take turns, with the user first and last.
func alternate(roles []string, user, model string) error {
	for i, r := range roles {
		if want := []string{user, model}[i%2]; r != want {
			return fmt.Errorf("message %d is of %s, not of %s", i, r, want)
		}
	}
	if len(roles)%2 == 0 {
		return errors.New("the last message is not the user's")
	}
	return nil
}

func validAnthropic(body string) error {
	type block struct {
		Type, Text, ID, Name, Thinking, Signature string
		Input                                     json.RawMessage
		ToolUseID                                 string `json:"tool_use_id"`
		IsError                                   bool   `json:"is_error"`
		Content                                   json.RawMessage
		Source                                    struct {
			Data      string
			MediaType string `json:"media_type"`
		}
	}
	var in struct {
		MaxTokens int `json:"max_tokens"`
		Messages  []struct {
			Role    string
			Content []block
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	if n := strings.Count(body, `"cache_control"`); n > 4 || in.MaxTokens == 0 {
		return fmt.Errorf("%d breakpoints, max_tokens %d", n, in.MaxTokens)
	}
	images := func(b block) error {
		return isImage(b.Source.MediaType, b.Source.Data, "image/png", "image/jpeg", "image/gif", "image/webp")
	}
	var calls callsRule
	var roles []string
	var errs []error
	for _, m := range in.Messages {
		roles = append(roles, m.Role)
		last := "tool_result"
		for i, b := range m.Content {
			switch b.Type {
			case "text":
				errs = append(errs, notBlank(b.Text))
			case "image":
				errs = append(errs, images(b))
			case "thinking":
				errs = append(errs, matches("signature", b.Signature, `^sealed-`))
			case "tool_use":
				errs = append(errs, calls.call(b.ID), matches("id", b.ID, `^[a-zA-Z0-9_-]+$`), matches("name", b.Name, `^[a-zA-Z0-9_-]{1,128}$`), isObject("input", b.Input))
			case "tool_result":
				errs = append(errs, calls.result(b.ToolUseID))
				if last != "tool_result" {
					errs = append(errs, fmt.Errorf("result %d stands behind something else", i))
				}
				var inside []block
				if len(b.Content) > 0 && b.Content[0] == '[' {
					errs = append(errs, json.Unmarshal(b.Content, &inside))
				}
				for _, c := range inside {
					if b.IsError && c.Type != "text" {
						errs = append(errs, errors.New("a failed result has more than text"))
					}
					if c.Type == "image" {
						errs = append(errs, images(c))
					}
				}
			default:
				errs = append(errs, fmt.Errorf("a block of type %q", b.Type))
			}
			last = b.Type
		}
		if len(m.Content) == 0 {
			errs = append(errs, errors.New("an empty message"))
		}
		if m.Role == "user" {
			errs = append(errs, calls.checkAnswered())
		}
	}
	return errors.Join(append(errs, alternate(roles, "user", "assistant"), calls.checkAnswered())...)
}

func validBedrock(body string) error {
	type image struct {
		Format string
		Source struct{ Bytes string }
	}
	var in struct {
		ToolConfig struct{ Tools []any }
		Messages   []struct {
			Role    string
			Content []struct {
				Text             *string
				Image            *image
				CachePoint       any
				ReasoningContent *struct{ ReasoningText struct{ Signature string } }
				ToolUse          *struct {
					ToolUseID, Name string
					Input           json.RawMessage
				}
				ToolResult *struct {
					ToolUseID string
					Content   []struct {
						Text  *string
						Image *image
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	images := func(i *image) error {
		return isImage("image/"+i.Format, i.Source.Bytes, "image/png", "image/jpeg", "image/gif", "image/webp")
	}
	var calls callsRule
	var roles []string
	var errs []error
	for _, m := range in.Messages {
		roles = append(roles, m.Role)
		others := false
		for _, b := range m.Content {
			switch {
			case b.Text != nil:
				errs = append(errs, notBlank(*b.Text))
			case b.Image != nil:
				errs = append(errs, images(b.Image))
			case b.CachePoint != nil:
			case b.ReasoningContent != nil:
				errs = append(errs, matches("signature", b.ReasoningContent.ReasoningText.Signature, `^signed-`))
			case b.ToolUse != nil:
				u := b.ToolUse
				errs = append(errs, calls.call(u.ToolUseID), matches("id", u.ToolUseID, `^[a-zA-Z0-9_-]{1,64}$`), matches("name", u.Name, `^[a-zA-Z0-9_-]{1,64}$`), isObject("input", u.Input))
			case b.ToolResult != nil:
				errs = append(errs, calls.result(b.ToolResult.ToolUseID))
				if others {
					errs = append(errs, errors.New("a result stands behind something else"))
				}
				if len(b.ToolResult.Content) == 0 {
					errs = append(errs, errors.New("an empty result"))
				}
				for _, c := range b.ToolResult.Content {
					if c.Image != nil {
						errs = append(errs, images(c.Image))
					} else if c.Text == nil || notBlank(*c.Text) != nil {
						errs = append(errs, errors.New("blank text in a result"))
					}
				}
			default:
				errs = append(errs, errors.New("an empty block"))
			}
			others = others || b.ToolResult == nil
		}
		if len(m.Content) == 0 {
			errs = append(errs, errors.New("an empty message"))
		}
		if m.Role == "user" {
			errs = append(errs, calls.checkAnswered())
		}
	}
	if len(calls.seen) > 0 && len(in.ToolConfig.Tools) == 0 {
		errs = append(errs, errors.New("calls without toolConfig"))
	}
	return errors.Join(append(errs, alternate(roles, "user", "assistant"), calls.checkAnswered())...)
}

func validGoogle(body string) error {
	var in struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             *string
				Thought          bool
				ThoughtSignature string
				InlineData       *struct{ MimeType, Data string }
				FunctionCall     *struct {
					ID, Name string
					Args     json.RawMessage
				}
				FunctionResponse *struct {
					ID, Name string
					Response json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	var roles []string
	var errs []error
	var waiting []string // names of the functions that the last content called
	for i, c := range in.Contents {
		roles = append(roles, c.Role)
		called, answered := []string{}, []string{}
		for _, p := range c.Parts {
			if p.ThoughtSignature != "" {
				errs = append(errs, matches("signature", p.ThoughtSignature, `^sealed-`))
			}
			switch {
			case p.Text != nil:
			case p.InlineData != nil:
				errs = append(errs, isImage(p.InlineData.MimeType, p.InlineData.Data, "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"))
			case p.FunctionCall != nil:
				called = append(called, p.FunctionCall.ID+" "+p.FunctionCall.Name)
				errs = append(errs, matches("name", p.FunctionCall.Name, `^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`), isObject("args", p.FunctionCall.Args))
			case p.FunctionResponse != nil:
				answered = append(answered, p.FunctionResponse.ID+" "+p.FunctionResponse.Name)
				errs = append(errs, isObject("response", p.FunctionResponse.Response))
			default:
				errs = append(errs, errors.New("a part without data"))
			}
		}
		if len(c.Parts) == 0 {
			errs = append(errs, errors.New("an empty content"))
		}
		if c.Role == "user" && !slices.Equal(waiting, answered) {
			errs = append(errs, fmt.Errorf("content %d answers %q, not %q", i, answered, waiting))
		}
		waiting = called
		if c.Role == "user" && len(called) > 0 || c.Role == "model" && len(answered) > 0 {
			errs = append(errs, errors.New("a call or an answer of the wrong role"))
		}
	}
	return errors.Join(append(errs, alternate(roles, "user", "model"))...)
}

func validOllama(body string) error {
	var in struct {
		Messages []struct {
			Role, Content, Thinking string
			Images                  []string
			ToolName                string `json:"tool_name"`
			ToolCallID              string `json:"tool_call_id"`
			ToolCalls               []struct {
				ID       string
				Function struct {
					Name      string
					Arguments json.RawMessage
				}
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	var calls callsRule
	var errs []error
	for i, m := range in.Messages {
		if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) || m.Role == "system" && i > 0 {
			errs = append(errs, fmt.Errorf("message %d has the role %q", i, m.Role))
		}
		for _, image := range m.Images {
			errs = append(errs, isImage("any", image, "any"))
		}
		if m.Role == "tool" {
			errs = append(errs, calls.result(m.ToolCallID), matches("tool_name", m.ToolName, `.`))
			continue
		}
		errs = append(errs, calls.checkAnswered())
		for _, c := range m.ToolCalls {
			errs = append(errs, calls.call(c.ID), isObject("arguments", c.Function.Arguments), matches("name", c.Function.Name, `.`))
		}
	}
	return errors.Join(append(errs, calls.checkAnswered())...)
}

func validChat(body string) error {
	var in struct {
		Messages []struct {
			Role       string
			Content    json.RawMessage
			ToolCallID string `json:"tool_call_id"`
			ToolCalls  []struct {
				ID, Type string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	var calls callsRule
	var errs []error
	for i, m := range in.Messages {
		if !slices.Contains([]string{"system", "user", "assistant", "tool"}, m.Role) || m.Role == "system" && i > 0 {
			errs = append(errs, fmt.Errorf("message %d has the role %q", i, m.Role))
		}
		var parts []struct {
			Type, Text string
			ImageURL   struct{ URL string } `json:"image_url"`
		}
		if len(m.Content) > 0 && m.Content[0] == '[' {
			errs = append(errs, json.Unmarshal(m.Content, &parts))
			if m.Role == "tool" {
				errs = append(errs, errors.New("a result is not a text"))
			}
		}
		for _, p := range parts {
			switch p.Type {
			case "text":
				errs = append(errs, notBlank(p.Text))
			case "image_url":
				kind, data, _ := strings.Cut(strings.TrimPrefix(p.ImageURL.URL, "data:"), ";base64,")
				errs = append(errs, isImage(kind, data, "image/png", "image/jpeg", "image/gif", "image/webp"))
				if m.Role != "user" {
					errs = append(errs, fmt.Errorf("an image of role %s", m.Role))
				}
			default:
				errs = append(errs, fmt.Errorf("a part of type %q", p.Type))
			}
		}
		if string(m.Content) == "null" && len(m.ToolCalls) == 0 {
			errs = append(errs, fmt.Errorf("message %d has no content", i))
		}
		if m.Role == "tool" {
			errs = append(errs, calls.result(m.ToolCallID))
			continue
		}
		errs = append(errs, calls.checkAnswered())
		for _, c := range m.ToolCalls {
			errs = append(errs, calls.call(c.ID), matches("id", c.ID, `^.{1,40}$`), matches("name", c.Function.Name, `^[a-zA-Z0-9_-]{1,64}$`), isObject("arguments", json.RawMessage(c.Function.Arguments)))
		}
	}
	return errors.Join(append(errs, calls.checkAnswered())...)
}

func validResponses(body string) error {
	var in struct {
		Store *bool
		Input []struct {
			Type, Role, Name, Arguments string
			ID                          string
			CallID                      string `json:"call_id"`
			Encrypted                   string `json:"encrypted_content"`
			Output                      *string
			Content                     []struct {
				Type, Text string
				ImageURL   string `json:"image_url"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return err
	}
	var calls callsRule
	var errs []error
	if in.Store == nil || *in.Store {
		errs = append(errs, errors.New("the answer would be stored"))
	}
	reasoning := false // whether the last item was reasoning
	for i, item := range in.Input {
		follows := reasoning
		reasoning = false
		switch {
		case item.Type == "reasoning":
			reasoning = true
			errs = append(errs, matches("encrypted_content", item.Encrypted, `^sealed-`), matches("id", item.ID, `.`))
		case item.Type == "function_call":
			errs = append(errs, calls.call(item.CallID), matches("call_id", item.CallID, `^.{1,64}$`), matches("name", item.Name, `^[a-zA-Z0-9_-]{1,64}$`), isObject("arguments", json.RawMessage(item.Arguments)))
		case item.Type == "function_call_output":
			errs = append(errs, calls.result(item.CallID))
			if item.Output == nil {
				errs = append(errs, fmt.Errorf("result %q has no output", item.CallID))
			}
		case item.Role == "user" || item.Role == "assistant":
			kind := map[string]string{"user": "input_text", "assistant": "output_text"}[item.Role]
			for _, c := range item.Content {
				switch {
				case c.Type == "input_image" && item.Role == "user":
					mediaType, data, _ := strings.Cut(strings.TrimPrefix(c.ImageURL, "data:"), ";base64,")
					errs = append(errs, isImage(mediaType, data, "image/png", "image/jpeg", "image/gif", "image/webp"))
				case c.Type != kind:
					errs = append(errs, fmt.Errorf("%s says %q", item.Role, c.Type))
				}
			}
			errs = append(errs, calls.checkAnswered())
		default:
			errs = append(errs, fmt.Errorf("item %d is %s %s", i, item.Type, item.Role))
		}
		if follows && (item.Type == "function_call_output" || item.Role == "user") {
			errs = append(errs, fmt.Errorf("item %d stands where what the reasoning led to should", i))
		}
	}
	return errors.Join(append(errs, calls.checkAnswered())...)
}
