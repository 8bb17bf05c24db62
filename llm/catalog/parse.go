package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/llm"
)

// FromModelsDev is the source of facts from the models.dev catalogue.
const FromModelsDev llm.Source = "models.dev"

// Limits of a catalogue. In 2026, that of models.dev had some 150 providers, 5,000 models and 3 MB.
const (
	maxBytes  = 32 << 20
	maxModels = 100_000
	maxName   = 256 // bytes
	maxTokens = 1 << 40
	maxCost   = 1e6 // dollars per million tokens
)

// index is a parsed catalogue. It is immutable.
type index struct {
	providers map[string]*provider
	byURL     map[string]*provider
	byName    map[string][]*model // by normal name, in the order of their providers' ids
	size      int                 // models
}

type provider struct {
	url          string
	models       map[string]*model
	byNormalName map[string]*model
}

type model struct {
	provider  string
	assistant bool
	facts     llm.Facts
}

// The used part of the catalogue's format: providers by id.
type (
	rawProvider struct {
		API    string              `json:"api"`
		Models map[string]rawModel `json:"models"`
	}
	rawModel struct {
		Status     string  `json:"status"`
		Attachment boolean `json:"attachment"`
		Reasoning  boolean `json:"reasoning"`
		ToolCall   boolean `json:"tool_call"`
		Modalities struct {
			Input  []string `json:"input"`
			Output []string `json:"output"`
		} `json:"modalities"`
		Limit struct {
			Context number `json:"context"`
			Output  number `json:"output"`
		} `json:"limit"`
		Cost struct {
			Input      number `json:"input"`
			Output     number `json:"output"`
			CacheRead  number `json:"cache_read"`
			CacheWrite number `json:"cache_write"`
		} `json:"cost"`
	}
)

// boolean and number are values that may be missing. A value of another type counts as missing.
type (
	boolean struct{ value, known bool }
	number  struct {
		value float64
		known bool
	}
)

// UnmarshalJSON implements json.Unmarshaler.
func (b *boolean) UnmarshalJSON(data []byte) error {
	b.value = string(data) == "true"
	b.known = b.value || string(data) == "false"
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseFloat(string(data), 64)
	n.value, n.known = v, err == nil
	return nil
}

// parse reads a catalogue in models.dev's format. It omits deprecated models and values of an
// unexpected type or size.
func parse(data []byte, source llm.Source) (*index, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the catalogue has more than %d bytes", maxBytes)
	}
	var raw map[string]rawProvider
	var mistyped *json.UnmarshalTypeError // the rest is decoded anyway
	if err := json.Unmarshal(data, &raw); err != nil && (!errors.As(err, &mistyped) || raw == nil) {
		return nil, err
	}
	return build(raw, source)
}

func build(raw map[string]rawProvider, source llm.Source) (*index, error) {
	idx := &index{providers: map[string]*provider{}, byURL: map[string]*provider{}, byName: map[string][]*model{}}
	for _, id := range slices.Sorted(maps.Keys(raw)) {
		if !validName(id) {
			continue
		}
		if err := idx.add(id, raw[id], source); err != nil {
			return nil, err
		}
	}
	return idx, nil
}

func (idx *index) add(id string, raw rawProvider, source llm.Source) error {
	p := &provider{url: normalURL(raw.API), models: map[string]*model{}, byNormalName: map[string]*model{}}
	idx.providers[id] = p
	if p.url != "" && idx.byURL[p.url] == nil {
		idx.byURL[p.url] = p
	}
	for _, name := range slices.Sorted(maps.Keys(raw.Models)) {
		r := raw.Models[name]
		if !validName(name) || r.Status == "deprecated" {
			continue
		}
		if idx.size++; idx.size > maxModels {
			return fmt.Errorf("the catalogue has more than %d models", maxModels)
		}
		m := &model{provider: id, assistant: r.assistant(), facts: r.facts(source)}
		p.models[name] = m
		if n := normalName(name); p.byNormalName[n] == nil {
			p.byNormalName[n] = m
			idx.byName[n] = append(idx.byName[n], m)
		}
	}
	return nil
}

// provider finds a configured provider by its URL, or by its name if the catalogue has no URL for
// that name.
func (idx *index) provider(name, url string) *provider {
	if p := idx.byURL[normalURL(url)]; p != nil {
		return p
	}
	if name == "bedrock" && idx.providers[name] == nil {
		name = "amazon-bedrock" // its name in models.dev
	}
	if p := idx.providers[name]; p != nil && p.url == "" {
		return p
	}
	return nil
}

func (p *provider) find(name string) *model {
	if m := p.models[name]; m != nil {
		return m
	}
	return p.byNormalName[normalName(name)]
}

func (r rawModel) assistant() bool {
	text := len(r.Modalities.Output) == 0 || slices.Contains(r.Modalities.Output, "text")
	return text && (!r.ToolCall.known || r.ToolCall.value)
}

func (r rawModel) facts(from llm.Source) llm.Facts {
	images := r.Attachment
	if r.Modalities.Input != nil {
		images = boolean{slices.Contains(r.Modalities.Input, "image"), true}
	}
	return llm.Facts{
		Context: tokens(r.Limit.Context, from), Output: tokens(r.Limit.Output, from),
		InputCost: cost(r.Cost.Input, from), OutputCost: cost(r.Cost.Output, from),
		CacheReadCost: cost(r.Cost.CacheRead, from), CacheWriteCost: cost(r.Cost.CacheWrite, from),
		Reasoning: flag(r.Reasoning, from), Images: flag(images, from), Tools: flag(r.ToolCall, from),
	}
}

func tokens(n number, from llm.Source) (f llm.Fact[int64]) {
	if n.known && n.value >= 1 && n.value <= maxTokens {
		f = llm.Fact[int64]{Value: int64(n.value), Source: from}
	}
	return f
}

func cost(n number, from llm.Source) (f llm.Fact[float64]) {
	if n.known && n.value >= 0 && n.value <= maxCost {
		f = llm.Fact[float64]{Value: n.value, Source: from}
	}
	return f
}

func flag(b boolean, from llm.Source) (f llm.Fact[bool]) {
	if b.known {
		f = llm.Fact[bool]{Value: b.value, Source: from}
	}
	return f
}

// validName reports whether an external name can be shown and sent.
func validName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r)
	})
}

// normalName returns the form in which the names that different providers use for one model are equal:
// without a vendor prefix, in lower case, with one kind of separator.
func normalName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("._: ", r) {
			return '-'
		}
		return unicode.ToLower(r)
	}, name[strings.LastIndexByte(name, '/')+1:])
}

func normalURL(url string) string { return strings.ToLower(strings.TrimRight(url, "/")) }
