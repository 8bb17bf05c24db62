package ollama

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// traits is a server's answer about a model. Older servers return no capabilities; then all are
// assumed.
type traits struct {
	context      int64 // tokens; 0 means unknown
	capabilities []string
}

func (t traits) can(what string) bool {
	return len(t.capabilities) == 0 || slices.Contains(t.capabilities, what)
}

// isForChats reports whether a model is for conversations. Not all servers list that capability, so a
// model without it is excluded only if it is an embedding model.
func (t traits) isForChats() bool {
	return t.can(chatting) || !slices.Contains(t.capabilities, embedding)
}

// Capabilities, by their names in the API.
const (
	chatting  = "completion"
	embedding = "embedding"
	tools     = "tools"
	vision    = "vision"
	thinking  = "thinking"
)

// maxLocalContext limits the context of a model that runs on the server's own machine, in tokens,
// unless its Modelfile or the configuration sets another. The maximum that a model supports needs
// more memory than most machines have.
const maxLocalContext = 32768

// showTimeout limits the request for the traits of one model, which servers read from disk.
const showTimeout = 5 * time.Second

// show requests the traits of a model. at.URL is the server's base URL, without /api.
func show(ctx context.Context, at llm.Endpoint, model string) (traits, error) {
	ctx, cancel := context.WithTimeout(ctx, showTimeout)
	defer cancel()
	at.URL += "/api/show"
	var s struct {
		Parameters   string                     `json:"parameters"`
		Capabilities []string                   `json:"capabilities"`
		Info         map[string]json.RawMessage `json:"model_info"`
		RemoteHost   string                     `json:"remote_host"`
	}
	if err := at.Exchange(ctx, map[string]string{"model": model}, &s); err != nil {
		return traits{}, err
	}
	t := traits{capabilities: s.Capabilities}
	for key, v := range s.Info {
		if strings.HasSuffix(key, ".context_length") {
			_ = json.Unmarshal(v, &t.context) // other values mean unknown
		}
	}
	if s.RemoteHost == "" { // remote models use another machine's memory
		t.context = min(t.context, maxLocalContext)
	}
	for line := range strings.Lines(s.Parameters) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "num_ctx" {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil && n > 0 {
				t.context = n
			}
		}
	}
	return t, nil
}

// ListModels asks a server for its models that can chat, and returns what is known about each. An
// answer also shows that the server is running. at.URL is the server's base URL, without /api.
func ListModels(ctx context.Context, at llm.Endpoint) (map[string]llm.Facts, error) {
	at.URL = strings.TrimRight(at.URL, "/")
	list := at
	list.URL += "/api/tags"
	var tags struct {
		Models []struct {
			Name  string `json:"name"`
			Model string `json:"model"` // some servers have only this
		} `json:"models"`
	}
	if err := list.Exchange(ctx, nil, &tags); err != nil {
		return nil, err
	}
	const maxConcurrent = 4 // few, because a server reads the answers from disk
	found := make([]traits, len(tags.Models))
	var wg sync.WaitGroup
	slots := make(chan struct{}, maxConcurrent)
	for i := range tags.Models {
		m := &tags.Models[i]
		m.Name = cmp.Or(m.Name, m.Model)
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			found[i], _ = show(ctx, at, m.Name) // on an error, the traits stay unknown
		})
	}
	wg.Wait()
	out := map[string]llm.Facts{}
	for i, m := range tags.Models {
		if m.Name != "" && found[i].isForChats() {
			out[m.Name] = found[i].facts()
		}
	}
	return out, nil
}

func (t traits) facts() llm.Facts {
	var f llm.Facts
	if t.context > 0 {
		f.Context = llm.Fact[int64]{Value: t.context, Source: llm.FromProvider}
	}
	if len(t.capabilities) > 0 {
		listed := func(what string) llm.Fact[bool] {
			return llm.Fact[bool]{Value: t.can(what), Source: llm.FromProvider}
		}
		f.Reasoning, f.Images, f.Tools = listed(thinking), listed(vision), listed(tools)
	}
	return f
}
