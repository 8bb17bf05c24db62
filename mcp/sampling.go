package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Sampled is the answer of a model to a server.
type Sampled struct {
	Text  string
	Model string // full id
	Stop  llm.StopReason
}

// Limits of the requests that servers may send to models.
const (
	maxSamples      = 20        // for one call
	maxSampleTokens = 8192      // of one answer
	maxSampleText   = 256 << 10 // bytes
	maxSampleImages = 10
	maxShownSample  = 3000 // bytes of a request shown to the user
)

const (
	allowLabel     = "Allow"
	allowCallLabel = "Allow for this call"
	denyLabel      = "Deny"
)

// errDenied is the answer to a server if the user did not allow its request.
var errDenied = &jsonrpc.Error{Code: -1, Message: "the user did not allow it"}

// sampleParams are the parameters of sampling/createMessage. The user chooses the model and its
// settings: the preferences of the server are ignored.
type sampleParams struct {
	Messages []struct {
		Role    wire.Role       `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	System    string          `json:"systemPrompt"`
	MaxTokens int64           `json:"maxTokens"`
	Tools     json.RawMessage `json:"tools"`
}

// sample sends a server's request to the chat's model, if the user allows it.
func (u responder) sample(ctx context.Context, r ServerRequest) (any, error) {
	var p sampleParams
	if err := json.Unmarshal(r.Params, &p); err != nil {
		return nil, &jsonrpc.Error{Code: wire.INVALID_PARAMS, Message: "cannot read the parameters: " + err.Error()}
	}
	request, err := p.request()
	if err != nil {
		return nil, &jsonrpc.Error{Code: wire.INVALID_PARAMS, Message: err.Error()}
	}
	asker := u.asker()
	if len(r.Calls) == 0 || asker == nil {
		return nil, &jsonrpc.Error{Code: -1, Message: "no user is available to allow the request"}
	}
	call := r.Calls[len(r.Calls)-1]
	defer call.pauseTimer()()
	if err := u.allowSample(ctx, asker, r.Server, call, request); err != nil {
		return nil, err
	}
	out, err := u.deps.Sample(ctx, call.ChatID, call.Model, request)
	if err != nil {
		return nil, fmt.Errorf("the model did not answer: %w", err)
	}
	reason := "endTurn"
	if out.Stop == llm.StopLength {
		reason = "maxTokens"
	}
	return map[string]any{
		"role": "assistant", "content": map[string]any{"type": "text", "text": out.Text}, "model": out.Model, "stopReason": reason,
	}, nil
}

// allowSample shows the user the request that the server wants to send to the model, and asks for
// permission.
func (u responder) allowSample(ctx context.Context, asker Asker, server string, call ActiveCall, request llm.Request) error {
	allowed, n := call.samples.next()
	switch {
	case n > maxSamples:
		return &jsonrpc.Error{Code: -1, Message: fmt.Sprintf("one call may ask the model only %d times", maxSamples)}
	case allowed:
		return nil
	}
	answer, cancelled, err := asker.Ask(ctx, Question{
		ChatID: call.ChatID, CallID: call.CallID,
		Text: fmt.Sprintf("The MCP server `%s` wants to ask the model %s, at your cost, for the call of %s (up to %d tokens). It says:\n\n%s",
			server, call.Model, call.Tool, request.MaxOutput, formatSample(request)),
		Options: []Option{
			{allowLabel, "The model answers this request"},
			{allowCallLabel, fmt.Sprintf("Also the server's later requests during this call, up to %d", maxSamples)},
			{denyLabel, "Tell the server that you refuse"},
		},
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		u.deps.Log.Warn("cannot ask the user whether an MCP server may use the model", "server", server, "err", err)
		return errDenied
	case cancelled || answer != allowLabel && answer != allowCallLabel:
		return errDenied
	case answer == allowCallLabel:
		call.samples.allow()
	}
	return nil
}

// request converts a server's request into a request to a model.
func (p sampleParams) request() (llm.Request, error) {
	out := llm.Request{Purpose: llm.PurposeSampling, System: p.System, MaxOutput: min(p.MaxTokens, maxSampleTokens)}
	switch {
	case len(p.Tools) > 0 && string(p.Tools) != "null":
		return out, errors.New("tools are not supported")
	case p.MaxTokens <= 0:
		return out, errors.New("maxTokens must be more than 0")
	case len(p.Messages) == 0:
		return out, errors.New("there are no messages")
	}
	size, images := len(p.System), 0
	for _, m := range p.Messages {
		message := llm.Message{Role: llm.User}
		if m.Role == wire.RoleAssistant {
			message.Role = llm.Assistant
		}
		parts, err := sampleParts(m.Content)
		if err != nil {
			return out, err
		}
		for _, part := range parts {
			switch part := part.(type) {
			case llm.Text:
				size += len(part.Text)
			case llm.Image:
				images++
				if message.Role == llm.Assistant {
					return out, errors.New("the model's messages cannot have images")
				}
			}
		}
		message.Parts = parts
		out.Messages = append(out.Messages, message)
	}
	switch {
	case size > maxSampleText:
		return out, fmt.Errorf("the messages have more than %d KiB", maxSampleText>>10)
	case images > maxSampleImages:
		return out, fmt.Errorf("there are more than %d images", maxSampleImages)
	case out.Messages[len(out.Messages)-1].Role != llm.User:
		return out, errors.New("the last message must be the user's")
	}
	return out, nil
}

// sampleParts reads the content of a message: one item or a list.
func sampleParts(raw json.RawMessage) ([]llm.Part, error) {
	list := []json.RawMessage{raw}
	if raw = bytes.TrimSpace(raw); len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("cannot read a message: %w", err)
		}
	}
	var out []llm.Part
	for _, one := range list {
		var c struct{ Type, Text, Data, MIMEType string }
		if err := json.Unmarshal(one, &c); err != nil {
			return nil, fmt.Errorf("cannot read a message: %w", err)
		}
		switch c.Type {
		case "text":
			out = append(out, llm.Text{Text: c.Text})
		case "image":
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil || !acceptedImage(c.MIMEType) || len(data) > workspace.MaxImage {
				return nil, errors.New("an image is too large or of an unsupported type")
			}
			out = append(out, llm.Image{MediaType: c.MIMEType, Data: data})
		default:
			return nil, fmt.Errorf("content of type %.50q is not supported", c.Type)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("a message is empty")
	}
	return out, nil
}

// formatSample formats a request for the user.
func formatSample(r llm.Request) string {
	var b strings.Builder
	line := func(who, text string) {
		b.WriteString("> " + who + ": " + strings.ReplaceAll(displayText(text, maxSampleText), "\n", "\n> ") + "\n>\n")
	}
	if r.System != "" {
		line("instructions", r.System)
	}
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				line(string(m.Role), p.Text)
			case llm.Image:
				line(string(m.Role), fmt.Sprintf("[an image, %d bytes]", len(p.Data)))
			}
		}
	}
	text := strings.TrimSuffix(b.String(), "\n>\n")
	if len(text) > maxShownSample {
		text = shorten.Bytes(text, maxShownSample) + fmt.Sprintf("\n\n(%d bytes in all)", b.Len())
	}
	return text
}
