package consent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Server is the record of an MCP server that the user agreed to.
type Server struct {
	Launch *Launch         `json:"launch,omitempty"` // nil if it is not recorded
	Tools  map[string]Tool `json:"tools,omitempty"`  // by the server's names
	Since  time.Time       `json:"since"`            // when it was last recorded
	Spoken *Spoken         `json:"spoken,omitempty"`
}

// Spoken is the protocol version with which a server answered when eca last offered the newest one.
type Spoken struct {
	Version string    `json:"version"`
	Launch  string    `json:"launch"` // hash of its Launch
	At      time.Time `json:"at"`
}

// Launch is how a server is started or reached, as written in the configuration.
type Launch struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"` // hashes of values, by name
	URL     string            `json:"url,omitempty"`
}

// Tool is a server's description of one of its tools.
type Tool struct {
	Sum         string `json:"sum"` // hash of the description, parameters included
	Description string `json:"description,omitempty"`
}

// Sum returns the hash of a content.
func Sum(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// Difference describes how now differs from l; empty if nothing changed. format makes values presentable.
func (l Launch) Difference(now Launch, format func(string) string) string {
	var out []string
	for _, c := range []struct{ name, agreed, current string }{
		{"command", l.Command, now.Command},
		{"args", strings.Join(l.Args, " "), strings.Join(now.Args, " ")},
		{"url", l.URL, now.URL},
	} {
		if c.agreed != c.current || c.name == "args" && !slices.Equal(l.Args, now.Args) {
			out = append(out, fmt.Sprintf("%s was %s and is %s", c.name, quoted(format(c.agreed)), quoted(format(c.current))))
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
			out = append(out, "env has a different "+name)
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

type serverRecord struct {
	Format
	Servers map[string]Server `json:"servers"`
}

// maxServers is how many servers are recorded; the oldest are removed.
const maxServers = 500

// ServerStore is the record of one user.
type ServerStore struct {
	File File
	now  func() time.Time
}

// NewServers returns the store in a folder, which is created when something is recorded.
func NewServers(dir string, now func() time.Time) *ServerStore {
	return &ServerStore{now: now, File: File{
		Path: filepath.Join(dir, "mcp-agreed.json"), What: "agreed MCP servers", Lost: "until then changes of servers cannot be detected; afterwards all servers count as new",
	}}
}

// Check returns why the record cannot be used.
func (s *ServerStore) Check() error { return s.File.Read(&serverRecord{}) }

// Get returns the record of a server.
func (s *ServerStore) Get(key string) (Server, error) {
	var r serverRecord
	if err := s.File.Read(&r); err != nil {
		return Server{}, err
	}
	return r.Servers[key], nil
}

// Change changes the record of a server, with a lock that excludes other processes.
func (s *ServerStore) Change(key string, change func(*Server)) error {
	var r serverRecord
	return s.File.Change(&r, func() {
		server := r.Servers[key]
		if server.Tools == nil {
			server.Tools = map[string]Tool{}
		}
		change(&server)
		server.Since = s.now().UTC().Truncate(time.Second)
		setEntry(&r.Servers, key, server)
		for len(r.Servers) > maxServers {
			oldest := slices.MinFunc(slices.Collect(maps.Keys(r.Servers)), func(a, b string) int {
				return r.Servers[a].Since.Compare(r.Servers[b].Since)
			})
			delete(r.Servers, oldest)
		}
	})
}

// Forget removes a server.
func (s *ServerStore) Forget(key string) error {
	var r serverRecord
	return s.File.Change(&r, func() { delete(r.Servers, key) })
}
