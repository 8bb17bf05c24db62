// Package sandbox bounds what a child process can do: which folders it can write to, and
// whether it reaches a network.
//
//	Linux    Landlock (ABI 3 or newer) for files, a filter of system calls (filter_linux.go)
//	         for the rest; applied by the second stage of package proc, which becomes the child
//	macOS    sandbox-exec with a profile
//	others   nothing
//
// It guarantees that a child either starts within its bounds or does not start, once Probe
// said that they can be held; and that what the child starts is bound as it is. A child reads
// and starts what the user can, unless its Policy lists what it may. Gaps names what else it
// cannot hold.
package sandbox

import (
	"path/filepath"
	"slices"
)

// Level is how much a child may write.
type Level string

// Levels.
const (
	None      Level = ""          // as the user
	ReadOnly  Level = "read-only" // nothing but a temporary folder of its own
	Workspace Level = "workspace" // the folders named, and caches of common tools
)

// Policy is what a child may do. The zero Policy bounds nothing.
type Policy struct {
	Level   Level    `json:"level"`
	Write   []string `json:"write,omitempty"` // folders it works in, absolute; at ReadOnly it may not write to them
	Network bool     `json:"network,omitempty"`

	// UnixSockets also lets it connect to services of this machine, which may act for the user
	// outside of all bounds (Docker, systemd, a terminal multiplexer). Only with Network; only Linux
	// refuses them.
	UnixSockets bool `json:"unixSockets,omitempty"`

	// Read and Execute are the files and folders that it may read and the programs that it may
	// start, absolute and with links resolved; nil is everything. The parts of the system that
	// every program needs can be read as well, and programs of Execute find their loaders. Only
	// Linux holds them.
	Read    []string `json:"read,omitempty"`
	Execute []string `json:"execute,omitempty"`

	Required bool `json:"required,omitempty"` // it does not start where the bounds cannot be held

	// PrivateTemp gives the child a temporary folder that it alone uses, as every child has at
	// ReadOnly. Package proc makes it, names it in Temp and sets TMPDIR.
	PrivateTemp bool   `json:"-"`
	Temp        string `json:"temp,omitempty"`

	// Isolate puts the child into user and mount namespaces of its own, in which everything is
	// read-only that it may not write to; OwnProcesses into a PID namespace as well. Where that
	// is not possible, the child does not start: see Isolation.
	Isolate      bool `json:"isolate,omitempty"`
	OwnProcesses bool `json:"ownProcesses,omitempty"`

	// Guard says which places in the workspace stay as they are; Prepare finds them. Where they
	// cannot be made read-only, Places.Since finds what changed.
	Guard  *Guard `json:"-"`
	Places Places `json:"places,omitzero"`

	// Caches are the private caches that Prepare makes from the user's; Env are the variables that
	// lead there.
	Caches  *Caches  `json:"-"`
	Env     []string `json:"-"`
	Private []string `json:"private,omitempty"` // folders of these in eca's own, which stay writable

	// Overlays are folders that the child may write to in private layers; only with Isolate.
	Overlays []Overlay `json:"overlays,omitempty"`

	// Loopback gives a child without Network a network namespace, in which it reaches itself
	// only; Joined says that it is in one already (proc.Pool.Join). Only with Isolate.
	Loopback bool `json:"loopback,omitempty"`
	Joined   bool `json:"joined,omitempty"`

	// Protect are processes that the child must not signal: its supervisor and eca itself.
	// Package proc names them.
	Protect []int `json:"protect,omitempty"`
}

// Bounds says whether the policy bounds anything.
func (p Policy) Bounds() bool { return p.Level != None }

// Support says what this system can hold.
type Support struct {
	Holds   bool   // bounds can be held
	With    string // what holds them
	Without string // why they cannot be held
}

// Error is why a child did not start although it was to be bound.
type Error struct{ Cause string }

func (e Error) Error() string {
	return "the sandbox that is required is not possible here: " + e.Cause + " (toolCall.sandbox)"
}

// Guard is where protected places are looked for.
type Guard struct {
	Roots    []string // absolute
	Names    Names
	Own      []string // eca's own folders, absolute: read-only wherever they are, and made where a child could make them
	OwnFiles []string // likewise files, if they exist
	Home     string   // the user's; may be empty

	write  []string // other folders that the child may write to
	far    bool     // also look beyond what can be kept, and into folders that are closed to their own user
	again  bool     // for Places.Since: no search for what only matters before the child starts
	common []string // git folders that belong to the roots, as found before
}

// Prepare finds the protected places as they are now, and makes the folders of private caches. A
// second call does nothing.
func (p *Policy) Prepare() error {
	if p.Level != Workspace {
		return nil
	}
	if p.Guard != nil && p.Places.found == nil {
		guard := *p.Guard
		guard.write, guard.far = p.Write, true
		if err := guard.makeOwn(); err != nil {
			return err
		}
		p.Places = FindPlaces(guard)
		p.Write = append(p.Write[:len(p.Write):len(p.Write)], p.Places.Write...)
	}
	if p.Caches == nil {
		return nil
	}
	layers, env, write, err := p.Caches.prepare(p.Write)
	p.Caches, p.Overlays, p.Env, p.Private = nil, layers, env, write
	p.Write = append(p.Write[:len(p.Write):len(p.Write)], write...)
	return err
}

// writable lists the folders that a child may write to, links resolved, if they
// exist.
func (p Policy) writable() []string {
	var out []string
	add := func(dir string) {
		if real, err := filepath.EvalSymlinks(dir); dir != "" && err == nil && real != "/" && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	add(p.Temp)
	if p.Level == ReadOnly {
		return out
	}
	for _, dir := range p.Write {
		add(dir)
	}
	for _, o := range p.Overlays {
		add(o.Dir)
	}
	return out
}
