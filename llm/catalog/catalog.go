// Package catalog knows models: which exist, what they take, can do and cost.
//
// It has two sources: the public catalogue of models.dev, a file in the cache folder
// that is fetched once a day, and below it a small snapshot that is part of the
// program (snapshot.json). The file is the reference server's, by name and format.
// Which variants of a request a model has is decided here too (variants.go).
//
// It guarantees that looking something up neither fails nor waits for the network or the
// disk: before Refresh only the snapshot is known, and that is parsed when it is first
// needed. Data from outside are bounded, and unexpected parts are left out.
// A catalogue that cannot be fetched or does not parse changes nothing.
//
// The user's configuration and the providers' lists of their models are not its
// business; the daemon prefers those.
package catalog

import (
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// URL is where models.dev publishes its catalogue.
const URL = "https://models.dev/api.json"

//go:embed snapshot.json
var snapshotJSON []byte

// Options of a Catalog.
type Options struct {
	Path   string // of the cached file
	URL    string // where it is fetched; empty: nowhere
	Client *http.Client
	Now    func() time.Time
}

// Catalog knows models. It is safe for use by several goroutines.
type Catalog struct {
	opts     Options
	snapshot func() *index
	file     atomic.Pointer[index] // nil until there is one

	mu   sync.Mutex // guards read, and that one Refresh works at a time
	read time.Time  // modification time of the file as it is in use
}

// New returns a catalogue. It reads nothing.
func New(o Options) *Catalog { return &Catalog{opts: o, snapshot: sync.OnceValue(parseSnapshot)} }

func parseSnapshot() *index {
	var doc struct {
		AsOf      string                 `json:"asOf"`
		Providers map[string]rawProvider `json:"providers"`
	}
	err := json.Unmarshal(snapshotJSON, &doc)
	idx, buildErr := build(doc.Providers, llm.Source("snapshot "+doc.AsOf))
	if err := errors.Join(err, buildErr); err != nil {
		panic(err) // embedded: a test parses it
	}
	return idx
}

// Warm reads what is embedded, which the first question would wait for otherwise.
func (c *Catalog) Warm() { c.snapshot() }

// indexes returns the sources, best first.
func (c *Catalog) indexes() []*index {
	if file := c.file.Load(); file != nil {
		return []*index{file, c.snapshot()}
	}
	return []*index{c.snapshot()}
}

// Models names the models of a provider that can work as an assistant: they write text
// and call tools. The result is sorted.
func (c *Catalog) Models(provider, url string) []string {
	for _, idx := range c.indexes() {
		p := idx.provider(provider, url)
		if p == nil {
			continue
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(p.models)) {
			if p.models[name].assistant {
				names = append(names, name)
			}
		}
		return names
	}
	return nil
}

// Facts returns what is known of a provider's model that has the given names, the
// likeliest first. Of a model that only other providers are known to have, it says
// what does not depend on the provider: no prices.
func (c *Catalog) Facts(provider, url string, names ...string) llm.Facts {
	var f llm.Facts
	indexes := c.indexes()
	for _, idx := range indexes {
		if p := idx.provider(provider, url); p != nil {
			for _, name := range names {
				if m := p.find(name); m != nil {
					f.Fill(m.facts)
				}
			}
		}
	}
	for _, idx := range indexes {
		for _, name := range names {
			if m := c.elsewhere(idx, name); m != nil {
				f.Fill(m.facts.WithoutCosts())
			}
		}
	}
	return f
}

// elsewhere finds a model by its name alone. Those who made it know best, and they are
// who the snapshot has; resellers often cut limits.
func (c *Catalog) elsewhere(idx *index, name string) *model {
	same := idx.byName[normal(name)]
	if len(same) == 0 {
		return nil
	}
	for _, m := range same {
		if makers := c.snapshot(); makers.providers[m.provider] != nil {
			return m
		}
	}
	return same[0]
}
