package acp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a/gateway"
)

// place is where sessions run: one gateway for the same folders and MCP servers.
type place struct {
	Place
	gateway *gateway.Gateway
	closing func() // may be called again
	users   int    // sessions that are open in it, and requests that use it
	synced  bool   // providers were asked for their models
}

// where is what requests say of a place.
type where struct {
	Cwd     string                     `json:"cwd"`
	Folders lenient[[]lenient[string]] `json:"additionalDirectories"`
	Servers listOf[lenient[mcpServer]] `json:"mcpServers"`
}

// mcpServer is an MCP server that the client brings along: stdio when it names no type.
type mcpServer struct {
	Type    string         `json:"type"`
	Name    string         `json:"name"`
	Command string         `json:"command"`
	Args    listOf[string] `json:"args"`
	Env     listOf[pair]   `json:"env"`
	URL     string         `json:"url"`
	Headers listOf[pair]   `json:"headers"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (w where) place() (Place, error) {
	if !filepath.IsAbs(w.Cwd) {
		return Place{}, failure(codeParams, "cwd must be an absolute path, not %q", w.Cwd)
	}
	p := Place{Folders: []string{filepath.Clean(w.Cwd)}}
	for _, folder := range w.Folders.Value {
		if !filepath.IsAbs(folder.Value) {
			return Place{}, failure(codeParams, "additionalDirectories must be absolute paths, not %q", folder.Value)
		}
		if clean := filepath.Clean(folder.Value); !slices.Contains(p.Folders, clean) {
			p.Folders = append(p.Folders, clean)
		}
	}
	servers := object{}
	for _, s := range w.Servers {
		if options := s.Value.options(); s.Value.Name != "" && options != nil {
			servers[s.Value.Name] = options
		}
	}
	if len(servers) > 0 {
		p.InitOptions, _ = json.Marshal(object{"mcpServers": servers})
	}
	return p, nil
}

// options is the server as the configuration has it; nil is none of a known kind.
func (s mcpServer) options() object {
	texts := func(pairs []pair) object {
		out := object{}
		for _, p := range pairs {
			out[p.Name] = p.Value
		}
		return out
	}
	switch {
	case (s.Type == "" || s.Type == "stdio") && s.Command != "":
		return object{"command": s.Command, "args": append([]string{}, s.Args...), "env": texts(s.Env)}
	case (s.Type == "http" || s.Type == "sse") && s.URL != "":
		return object{"url": s.URL, "headers": texts(s.Headers)}
	}
	return nil
}

// checkFolder says why sessions cannot run in a folder. A path that is not absolute is left
// to place.
func checkFolder(member, path string) error {
	if !filepath.IsAbs(path) {
		return nil
	}
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return failure(codeParams, "%s: the folder %s does not exist", member, path)
	case err != nil:
		return failure(codeParams, "%s: the folder cannot be used: %v", member, err)
	case !info.IsDir():
		return failure(codeParams, "%s: %s is not a folder", member, path)
	}
	return nil
}

// checkAdditional refuses additional folders that do not exist.
func (w where) checkAdditional() error {
	for i, folder := range w.Folders.Value {
		if err := checkFolder(fmt.Sprintf("additionalDirectories[%d]", i), folder.Value); err != nil {
			return err
		}
	}
	return nil
}

// open returns the place that a request names, which must leave it. It is kept while
// somebody uses it.
func (a *agent) open(w where) (*place, error) {
	where, err := w.place()
	if err != nil {
		return nil, err
	}
	key := strings.Join(where.Folders, "\x00") + "\x00\x00" + string(where.InitOptions)
	if p := a.use(func(other string, _ *place) bool { return other == key }); p != nil {
		return p, nil
	}
	where.Editor.Files = a.files()
	g, closing, err := a.opts.Open(where)
	if err != nil {
		return nil, err
	}
	p := &place{Place: where, gateway: g, closing: sync.OnceFunc(closing), users: 1}
	a.mu.Lock()
	a.places[key] = p
	a.mu.Unlock()
	return p, nil
}

// use returns a place that is open and fits, or nil. It must be left.
func (a *agent) use(fits func(key string, p *place) bool) *place {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, p := range a.places {
		if fits(key, p) {
			p.users++
			return p
		}
	}
	return nil
}

// leave closes a place that nobody uses any more.
func (a *agent) leave(p *place) {
	a.mu.Lock()
	p.users--
	last := p.users <= 0
	if last {
		maps.DeleteFunc(a.places, func(_ string, q *place) bool { return q == p })
	}
	a.mu.Unlock()
	if last {
		p.closing()
	}
}

func (a *agent) closePlaces() {
	a.mu.Lock()
	places := slices.Collect(maps.Values(a.places))
	clear(a.places)
	a.mu.Unlock()
	for _, p := range places {
		p.closing()
	}
}
