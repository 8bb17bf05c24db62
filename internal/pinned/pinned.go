// Package pinned keeps how MCP servers were when the user last agreed to them: how they are
// started, and what their tools say about themselves.
//
// The record is one file, mcp-agreed.json, for the user alone; several processes may use it
// at the same time. It keeps no values of environment variables, only their sums. A record
// that can not be read is an error for who asks, and is not overwritten. What follows from a
// difference is decided elsewhere.
package pinned

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/lockedfile"
)

// Server is one as the user knows it.
type Server struct {
	Launch *Launch         `json:"launch,omitempty"` // nil: it is not kept, or not known yet
	Tools  map[string]Tool `json:"tools,omitempty"`  // by the server's names
	Since  time.Time       `json:"since"`            // the last time it was recorded
	Spoken *Spoken         `json:"spoken,omitempty"`
}

// Spoken is the version of the protocol that a server spoke the last time it was asked for
// the newest.
type Spoken struct {
	Version string    `json:"version"`
	Launch  string    `json:"launch"` // a sum of how it was started
	At      time.Time `json:"at"`
}

// Launch is how a server is started or reached, as it is written in the configuration.
type Launch struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // sums of values, by name
	URL     string            `json:"url,omitempty"`
}

// Tool is what a tool said about itself.
type Tool struct {
	Sum         string `json:"sum"` // of all it says, parameters included
	Description string `json:"description,omitempty"`
}

// Sum names a content.
func Sum(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Difference says in words what is different in now; empty if nothing is.
func (l Launch) Difference(now Launch) string {
	var out []string
	for _, c := range []struct{ name, before, now string }{
		{"command", l.Command, now.Command},
		{"args", strings.Join(l.Args, " "), strings.Join(now.Args, " ")},
		{"url", l.URL, now.URL},
	} {
		if c.before != c.now || c.name == "args" && !slices.Equal(l.Args, now.Args) {
			out = append(out, fmt.Sprintf("%s was %s and is %s", c.name, quoted(c.before), quoted(c.now)))
		}
	}
	names := map[string]bool{}
	for name := range l.Env {
		names[name] = true
	}
	for name := range now.Env {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		before, had := l.Env[name]
		after, has := now.Env[name]
		switch {
		case !had:
			out = append(out, "env has "+name+" now")
		case !has:
			out = append(out, "env has no "+name+" any more")
		case before != after:
			out = append(out, "env has another "+name)
		}
	}
	return strings.Join(out, "; ")
}

func quoted(text string) string {
	if text == "" {
		return "nothing"
	}
	return "`" + text + "`"
}

type record struct {
	Version int               `json:"version"`
	Servers map[string]Server `json:"servers"`
}

const (
	version    = 1
	maxServers = 500 // the oldest are forgotten
)

// Store is the record of one user.
type Store struct {
	file lockedfile.File
	now  func() time.Time
}

// New returns the store in a folder, which is created when something is recorded.
func New(dir string, now func() time.Time) *Store {
	return &Store{file: lockedfile.New(filepath.Join(dir, "mcp-agreed.json"), version), now: now}
}

// Get returns what is recorded of a server.
func (s *Store) Get(key string) (Server, error) {
	var r record
	if err := s.file.Read(&r); err != nil {
		return Server{}, fmt.Errorf("the record of what MCP servers were can not be read: %w", err)
	}
	return r.Servers[key], nil
}

// Change changes what is recorded of a server, alone among all processes.
func (s *Store) Change(key string, change func(*Server)) error {
	return s.change(func(r *record) {
		server := r.Servers[key]
		server.Tools = maps.Clone(server.Tools)
		if server.Tools == nil {
			server.Tools = map[string]Tool{}
		}
		change(&server)
		server.Since = s.now().UTC().Truncate(time.Second)
		r.Servers[key] = server
		for len(r.Servers) > maxServers {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(r.Servers)), func(a, b string) int {
				return r.Servers[a].Since.Compare(r.Servers[b].Since)
			})
			delete(r.Servers, oldest)
		}
	})
}

// Forget removes a server.
func (s *Store) Forget(key string) error {
	return s.change(func(r *record) { delete(r.Servers, key) })
}

func (s *Store) change(change func(*record)) error {
	var r record
	err := s.file.Change(&r, func() {
		r.Version = version
		if r.Servers == nil {
			r.Servers = map[string]Server{}
		}
		change(&r)
	})
	if err != nil {
		return fmt.Errorf("the record of what MCP servers were is as it was: %w", err)
	}
	return nil
}
