package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// instance is a Setup with the service that runs its turns. Sessions with the same folders and MCP
// servers share one.
type instance struct {
	Setup
	key     string
	turns   *turn.Service
	closing func() // closes turns; may be called repeatedly
	owner   *instances
	users   int         // open sessions and requests that use it; guarded by owner.mu
	synced  atomic.Bool // the models of the providers were requested
}

// errorFor converts an error to the form for the client. It returns nil for nil.
func (p *instance) errorFor(ctx context.Context, err error) error {
	var known *jsonrpc.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	return callError(p.turns.Explain(ctx, err))
}

// instances contains the open instances.
type instances struct {
	start func(Setup) (*turn.Service, func(), error)

	mu   sync.Mutex // guards the fields below
	open []*instance
}

// find returns an open instance that fits, or nil. The caller must release it.
func (all *instances) find(fits func(*instance) bool) *instance {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, p := range all.open {
		if fits(p) {
			p.users++
			return p
		}
	}
	return nil
}

// acquire returns the instance of a Setup, and opens it if necessary. The caller must release it.
// acquire must not be called concurrently.
func (all *instances) acquire(setup Setup) (*instance, error) {
	key := strings.Join(setup.Folders, "\x00") + "\x00\x00" + string(setup.InitOptions)
	if p := all.find(func(p *instance) bool { return p.key == key }); p != nil {
		return p, nil
	}
	turns, closing, err := all.start(setup)
	if err != nil {
		return nil, err
	}
	p := &instance{Setup: setup, key: key, turns: turns, closing: sync.OnceFunc(closing), owner: all, users: 1}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.open = append(all.open, p)
	return p, nil
}

func (p *instance) retain() {
	p.owner.mu.Lock()
	defer p.owner.mu.Unlock()
	p.users++
}

// release closes an instance after its last use.
func (p *instance) release() {
	p.owner.mu.Lock()
	p.users--
	last := p.users <= 0
	if last {
		p.owner.open = slices.DeleteFunc(p.owner.open, func(other *instance) bool { return other == p })
	}
	p.owner.mu.Unlock()
	if last {
		p.closing()
	}
}

func (all *instances) close() {
	all.mu.Lock()
	open := all.open
	all.open = nil
	all.mu.Unlock()
	for _, p := range open {
		p.closing()
	}
}

// setupParams are the parameters that describe a Setup.
type setupParams struct {
	Cwd     string                               `json:"cwd"`
	Folders e2a.Optional[[]e2a.Optional[string]] `json:"additionalDirectories"`
	Servers listOf[e2a.Optional[mcpServer]]      `json:"mcpServers"`
}

// mcpServer is an MCP server from the client; without a type it uses stdio.
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

// setup returns the Setup. It ignores MCP servers without a name or of an unknown kind.
func (p setupParams) setup() (Setup, error) {
	if !filepath.IsAbs(p.Cwd) {
		return Setup{}, failure(codeParams, "cwd must be an absolute path, not %q", p.Cwd)
	}
	out := Setup{Folders: []string{filepath.Clean(p.Cwd)}}
	for _, folder := range p.Folders.Value {
		if !filepath.IsAbs(folder.Value) {
			return Setup{}, failure(codeParams, "additionalDirectories must be absolute paths, not %q", folder.Value)
		}
		if clean := filepath.Clean(folder.Value); !slices.Contains(out.Folders, clean) {
			out.Folders = append(out.Folders, clean)
		}
	}
	servers := map[string]serverOptions{}
	for _, s := range p.Servers {
		if options, ok := s.Value.options(); s.Value.Name != "" && ok {
			servers[s.Value.Name] = options
		}
	}
	if len(servers) > 0 {
		out.InitOptions, _ = json.Marshal(initOptions{servers})
	}
	return out, nil
}

// initOptions is the configuration of MCP servers.
type initOptions struct {
	Servers map[string]serverOptions `json:"mcpServers"`
}

type serverOptions struct {
	Args    []string          `json:"args,omitzero"`
	Command string            `json:"command,omitempty"`
	Env     map[string]string `json:"env,omitzero"`
	Headers map[string]string `json:"headers,omitzero"`
	URL     string            `json:"url,omitempty"`
}

// options returns the server in the form of the configuration. It returns false if the type is
// unknown or the command or URL is missing.
func (s mcpServer) options() (serverOptions, bool) {
	mapOf := func(pairs []pair) map[string]string {
		out := map[string]string{}
		for _, p := range pairs {
			out[p.Name] = p.Value
		}
		return out
	}
	switch {
	case (s.Type == "" || s.Type == "stdio") && s.Command != "":
		return serverOptions{Command: s.Command, Args: append([]string{}, s.Args...), Env: mapOf(s.Env)}, true
	case (s.Type == "http" || s.Type == "sse") && s.URL != "":
		return serverOptions{URL: s.URL, Headers: mapOf(s.Headers)}, true
	}
	return serverOptions{}, false
}

// checkFolder returns an error if an absolute path is not a usable folder. It accepts relative paths,
// which setup refuses. member is the name of the parameter.
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

// open returns the instance for a request. The caller must release it.
func (a *agent) open(params setupParams) (*instance, error) {
	for i, folder := range params.Folders.Value {
		if err := checkFolder(fmt.Sprintf("additionalDirectories[%d]", i), folder.Value); err != nil {
			return nil, err
		}
	}
	p, err := params.setup()
	if err != nil {
		return nil, err
	}
	p.Editor.Files = a.files()
	return a.instances.acquire(p)
}
