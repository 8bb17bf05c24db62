package google

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// maxPages limits how many pages of a list of models are fetched; a page has up to 1,000 models.
const maxPages = 20

// ListModels asks for the models that can chat, and returns their facts. at.URL is the provider's
// URL as users write it.
func ListModels(ctx context.Context, at llm.Endpoint) (map[string]llm.Facts, error) {
	base := at.URL
	at.Explain = explain
	query := url.Values{"pageSize": {"1000"}}
	out := map[string]llm.Facts{}
	for range maxPages {
		var page struct {
			Models []struct {
				Name     string   `json:"name"`
				Methods  []string `json:"supportedGenerationMethods"`
				Input    int64    `json:"inputTokenLimit"`
				Output   int64    `json:"outputTokenLimit"`
				Thinking bool     `json:"thinking"`
			} `json:"models"`
			Next string `json:"nextPageToken"`
		}
		var err error
		if at.URL, err = endpoint(base, query, "models"); err != nil {
			return nil, err
		}
		if err := at.Exchange(ctx, nil, &page); err != nil {
			return nil, err
		}
		for _, m := range page.Models {
			name := strings.TrimPrefix(m.Name, "models/")
			if name != "" && slices.Contains(m.Methods, "generateContent") && !notForChat(name) {
				out[name] = llm.Facts{Context: llm.ListedTokens(m.Input), Output: llm.ListedTokens(m.Output), Reasoning: llm.Fact[bool]{Value: m.Thinking, Source: llm.FromProvider}}
			}
		}
		if page.Next == "" {
			return out, nil
		}
		query.Set("pageToken", page.Next)
	}
	return nil, errors.New("the list of models has too many pages")
}

// notForChat reports whether a model accepts prompts but does not generate text.
func notForChat(name string) bool {
	return llm.Mentions(name, "-tts", "-image", "-audio", "-live", "embedding")
}
