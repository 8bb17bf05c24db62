package openai

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// ListModels asks a server for its models, and returns their facts. e.URL is the provider's URL as
// users write it.
func ListModels(ctx context.Context, e llm.Endpoint) (map[string]llm.Facts, error) {
	// The list has the same parent path as chat/completions.
	e.URL = strings.TrimSuffix(URL(e.URL, "", APIChat), "/chat/completions") + "/models"
	var body json.RawMessage
	if err := e.Exchange(ctx, nil, &body); err != nil {
		return nil, err
	}
	return parseModels(body)
}

// listedModel is an entry of a list of models. OpenAI sends only the id, vLLM also the context, and
// OpenRouter most of the fields.
type listedModel struct {
	ID            string `json:"id"`
	ContextLength int64  `json:"context_length"`
	MaxModelLen   int64  `json:"max_model_len"`
	TopProvider   struct {
		MaxCompletionTokens int64 `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Architecture struct {
		InputModalities []string `json:"input_modalities"`
	} `json:"architecture"`
	SupportedParameters []string `json:"supported_parameters"`
	Pricing             struct {
		Prompt         string `json:"prompt"` // all prices are in dollars per token
		Completion     string `json:"completion"`
		InputCacheRead string `json:"input_cache_read"`
		CacheWrite     string `json:"input_cache_write"`
	} `json:"pricing"`
}

// parseModels parses a list. It ignores fields of unexpected types.
func parseModels(body []byte) (map[string]llm.Facts, error) {
	var list struct {
		Data []listedModel `json:"data"`
	}
	var mistyped *json.UnmarshalTypeError // the rest is decoded anyway
	if err := json.Unmarshal(body, &list); err != nil && (!errors.As(err, &mistyped) || list.Data == nil) {
		return nil, err
	}
	out := map[string]llm.Facts{}
	for _, d := range list.Data {
		if d.ID != "" && !notForChat(d.ID) {
			out[d.ID] = d.facts()
		}
	}
	return out, nil
}

func (d listedModel) facts() llm.Facts {
	f := llm.Facts{
		Context: llm.ListedTokens(max(d.ContextLength, d.MaxModelLen)), Output: llm.ListedTokens(d.TopProvider.MaxCompletionTokens),
		InputCost: listedCost(d.Pricing.Prompt), OutputCost: listedCost(d.Pricing.Completion),
		CacheReadCost: listedCost(d.Pricing.InputCacheRead), CacheWriteCost: listedCost(d.Pricing.CacheWrite),
	}
	listed := func(list []string, what string) llm.Fact[bool] {
		if list == nil {
			return llm.Fact[bool]{}
		}
		return llm.Fact[bool]{Value: slices.Contains(list, what), Source: llm.FromProvider}
	}
	f.Images = listed(d.Architecture.InputModalities, "image")
	f.Tools = listed(d.SupportedParameters, "tools")
	f.Reasoning = listed(d.SupportedParameters, "reasoning")
	return f
}

// listedCost reads a price in dollars per token; a negative one means that it varies.
func listedCost(s string) llm.Fact[float64] {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return llm.Fact[float64]{}
	}
	return llm.Fact[float64]{Value: math.Round(v*1e12) / 1e6, Source: llm.FromProvider}
}

// notForChat reports whether a model is not for conversations.
func notForChat(id string) bool {
	return llm.Mentions(id, "embedding", "whisper", "tts", "dall-e", "moderation", "-audio", "realtime", "-image", "transcribe", "davinci", "babbage", "sora")
}
