package providers

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/anthropic"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/google"
	"github.com/seed-dec29ce4/eca/llm/ollama"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// format describes how to use the servers of a wire format.
type format struct {
	client func(v *view, name string, p config.Provider) (llm.Model, error)
	// list asks a server for its models. It is nil if servers do not list them.
	list func(ctx context.Context, at llm.Endpoint) (map[string]llm.Facts, error)
	// keyHeader is the header that contains the key. Without it, the key is a bearer token.
	keyHeader string
	// reasons reports whether an unknown model is asked to reason. It is nil if a model that cannot
	// reason would refuse the request.
	reasons     func(model string) bool
	searchPrice float64 // of 1000 web searches, in dollars; 0 if unknown
}

// formats returns the row of each wire format, by its name in the configuration. A test compares the
// names with the tag enum of config.Provider.API.
func formats() map[string]format {
	responses := format{client: responsesClient, list: openai.ListModels, reasons: likelyReasons, searchPrice: 10}
	return map[string]format{
		openai.APIResponses: responses,
		"openai":            responses, // an older name
		openai.APIChat:      {client: chatClient, list: openai.ListModels, reasons: likelyReasons},
		anthropic.API: {client: func(v *view, name string, p config.Provider) (llm.Model, error) {
			e := v.endpoint(name, p)
			e.URL = anthropic.URL(p.URL, p.Path)
			return anthropic.NewMessages(e), nil
		}, list: anthropic.ListModels, keyHeader: anthropic.KeyHeader, reasons: likelyReasons, searchPrice: 10},
		bedrock.API: {client: func(v *view, name string, p config.Provider) (llm.Model, error) {
			return bedrock.New(v.endpoint(name, p), v.aws()), nil
		}, reasons: bedrock.Reasons},
		google.API: {client: func(v *view, name string, p config.Provider) (llm.Model, error) {
			return google.New(v.endpoint(name, p)), nil
		}, list: google.ListModels, keyHeader: google.KeyHeader, searchPrice: 14},
		ollama.API: {client: func(v *view, name string, p config.Provider) (llm.Model, error) {
			return ollama.New(v.endpoint(name, p), p.Path), nil
		}, list: ollama.ListModels},
		apiCassette: {client: cassetteClient},
	}
}

// formatOf returns the row of an API. An unknown API has no client.
func formatOf(api string) format {
	if f, ok := formats()[api]; ok {
		return f
	}
	return format{list: openai.ListModels, reasons: likelyReasons}
}

// likelyReasons reports whether a model is likely to accept a request to reason.
func likelyReasons(model string) bool {
	return !strings.HasPrefix(model, "gpt-4") && !strings.HasPrefix(model, "gpt-3") && anthropic.CanThink(model)
}

func responsesClient(v *view, name string, p config.Provider) (llm.Model, error) {
	responses := v.endpoint(name, p)
	chat := responses
	responses.URL = openai.URL(p.URL, p.Path, openai.APIResponses)
	chat.URL = openai.URL(p.URL, "", openai.APIChat)
	if p.Path != "" || strings.HasPrefix(p.URL, "https://api.openai.com") {
		return openai.NewResponses(responses), nil
	}
	return openai.WithFallback(openai.NewResponses(responses), openai.NewChat(chat, chatOptions(name, p, v.cfg.Conformance().UnmergedDeltas))), nil
}

func chatClient(v *view, name string, p config.Provider) (llm.Model, error) {
	e := v.endpoint(name, p)
	e.URL = openai.URL(p.URL, p.Path, openai.APIChat)
	return openai.NewChat(e, chatOptions(name, p, v.cfg.Conformance().UnmergedDeltas)), nil
}

func cassetteClient(v *view, name string, p config.Provider) (llm.Model, error) {
	player, err := readCassette(v, name, p)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", v.cfg.Spelled(name), err)
	}
	return player, nil
}

func readCassette(v *view, name string, p config.Provider) (*cassette.Player, error) {
	data, err := os.ReadFile(p.URL)
	if err != nil {
		if from := v.urlSource(name, p); from != "" {
			err = fmt.Errorf("%w (named by %s)", err, from)
		}
		return nil, fmt.Errorf("the cassette cannot be read: %w", err)
	}
	player, err := cassette.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", p.URL, err)
	}
	return player, nil
}

// unreadableCassette returns why the cassette of a provider cannot be used, or "".
func unreadableCassette(v *view, name string, p config.Provider) string {
	if p.API != apiCassette || p.URL == "" {
		return ""
	}
	if _, err := readCassette(v, name, p); err != nil {
		return err.Error()
	}
	return ""
}
