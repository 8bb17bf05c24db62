// Package catalog provides public facts about models: names, limits, capabilities and prices.
//
// It has two sources: the public catalogue of models.dev, a file in the cache folder that is
// fetched once a day, and, with lower priority, a small snapshot that is embedded in the program
// (snapshot.json). The file has the same name and format as that of the reference server. The
// package also returns the variants of a model (variants.go).
//
// It guarantees that a lookup never fails and never waits for the network or the disk: before
// Refresh it uses only the snapshot, which is parsed at first use. The size of external data is
// limited, and unexpected parts are left out. If a catalogue cannot be fetched or parsed, the
// previous one stays in use.
//
// It does not read the user's configuration or the providers' own lists of models; the daemon
// combines them and prefers those.
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
	URL    string // where to fetch the catalogue; empty: do not fetch
	Client *http.Client
	Now    func() time.Time
}

// Catalog has facts about models. It is safe for concurrent use.
type Catalog struct {
	opts     Options
	snapshot func() *index
	file     atomic.Pointer[index] // nil until a file has been read

	mu       sync.Mutex // guards fileTime; held by Refresh, so that only one runs at a time
	fileTime time.Time  // modification time of the file in use
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

// Warm parses the embedded snapshot, so that the first lookup does not have to.
func (c *Catalog) Warm() { c.snapshot() }

// indexes returns the sources, best first.
func (c *Catalog) indexes() []*index {
	if file := c.file.Load(); file != nil {
		return []*index{file, c.snapshot()}
	}
	return []*index{c.snapshot()}
}

// Models returns the sorted names of a provider's models that can be assistants: they write text
// and call tools.
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

// Facts returns what is known about a provider's model under any of the given names, most likely
// name first. Facts that are unknown for this provider are taken from other providers of the same
// model, except prices.
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
			if m := c.anyProvider(idx, name); m != nil {
				f.Fill(m.facts.WithoutCosts())
			}
		}
	}
	return f
}

// anyProvider finds a model by its name alone. It prefers the vendors of models, which are the
// providers in the snapshot, because resellers often reduce limits.
func (c *Catalog) anyProvider(idx *index, name string) *model {
	same := idx.byName[normalName(name)]
	if len(same) == 0 {
		return nil
	}
	for _, m := range same {
		if vendors := c.snapshot(); vendors.providers[m.provider] != nil {
			return m
		}
	}
	return same[0]
}
