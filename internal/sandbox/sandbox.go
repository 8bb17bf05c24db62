// Package sandbox bounds what a child process can do: which folders it can write to, and whether it
// can reach a network.
//
// Linux: Landlock (ABI 3 or newer) for files and a seccomp filter (filter_linux.go) for the rest,
// applied by the second stage of package proc, which becomes the child. macOS: sandbox-exec with a
// profile. Other systems: nothing.
//
// If Probe reports that bounds can be enforced, a child either starts within its bounds or does not
// start, and every process that it starts has the same bounds. A child may read and execute
// everything that the user can, unless its Policy lists files and programs. Gaps lists the other
// gaps.
package sandbox

import (
	"path/filepath"
	"slices"
)

// Level determines which folders a child may write to.
type Level string

// Levels.
const (
	None      Level = ""          // no bounds
	ReadOnly  Level = "read-only" // its own temporary folder
	Workspace Level = "workspace" // the folders of Policy.Write, and caches of common tools
)

// Policy is what a child may do. The zero Policy bounds nothing.
type Policy struct {
	Level   Level    `json:"level"`
	Write   []string `json:"write,omitempty"` // folders that the child works in, absolute; read-only at level ReadOnly
	Network bool     `json:"network,omitempty"`

	// UnixSockets also lets the child connect to Unix sockets of this machine, whose services may
	// act for the user outside all bounds (Docker, systemd, a terminal multiplexer). It needs
	// Network. Only Linux refuses Unix sockets.
	UnixSockets bool `json:"unixSockets,omitempty"`

	// Read lists the files and folders that the child may read, Execute the programs that it may
	// start, absolute and with symlinks resolved; nil allows everything. The parts of the system
	// that every program needs, and the dynamic loaders of programs in Execute, are added. Enforced
	// on Linux only.
	Read    []string `json:"read,omitempty"`
	Execute []string `json:"execute,omitempty"`

	Required bool `json:"required,omitempty"` // the child does not start if the bounds cannot be enforced

	// PrivateTemp gives the child its own temporary folder, which every child at level ReadOnly
	// has. Package proc creates the folder, stores its path in Temp and sets TMPDIR.
	PrivateTemp bool   `json:"-"`
	Temp        string `json:"temp,omitempty"`

	// Isolate puts the child into its own user and mount namespaces, in which everything is
	// read-only except the folders that it may write to. OwnProcesses adds a PID namespace. If the
	// system does not allow these namespaces (see Isolation), the child does not start.
	Isolate      bool `json:"isolate,omitempty"`
	OwnProcesses bool `json:"ownProcesses,omitempty"`

	// Guard describes the protected paths in the workspace; Prepare finds them and sets Places.
	// Places.Since finds changes at protected paths that cannot be made read-only.
	Guard  *Guard `json:"-"`
	Places Places `json:"places,omitzero"`

	// Caches describes the private caches that Prepare creates; Env are the variables that direct
	// tools to them.
	Caches  *Caches  `json:"-"`
	Env     []string `json:"-"`
	Private []string `json:"private,omitempty"` // folders of private caches within eca's own folders; they stay writable

	// Overlays are folders whose changes go to private layers; only with Isolate.
	Overlays []Overlay `json:"overlays,omitempty"`

	// Loopback gives a child without Network its own network namespace, which has only a loopback
	// interface. Joined means that the child already is in one (proc.Pool.Join). Only with Isolate.
	Loopback bool `json:"loopback,omitempty"`
	Joined   bool `json:"joined,omitempty"`

	// Protect are processes that the child must not signal: its supervisor and eca itself. Package
	// proc sets it.
	Protect []int `json:"protect,omitempty"`
}

// Bounds reports whether the policy bounds anything.
func (p Policy) Bounds() bool { return p.Level != None }

// Support describes whether this system can enforce bounds.
type Support struct {
	Holds   bool   // bounds can be enforced
	With    string // the mechanism that enforces them
	Without string // why they cannot be enforced
}

// Error is why a child with required bounds did not start.
type Error struct{ Cause string }

func (e Error) Error() string {
	return "the required sandbox is not available on this system: " + e.Cause + " (toolCall.sandbox)"
}

// Guard describes where to search for protected paths.
type Guard struct {
	Roots    []string // absolute
	Names    Names
	Own      []string // eca's own folders, absolute: read-only wherever they are, and created if a child could create them
	OwnFiles []string // eca's own files, absolute: read-only if they exist
	Home     string   // the user's home folder; may be empty

	write   []string // other folders that the child may write to
	wide    bool     // search beyond the normal limits, and make unreadable folders of the user readable for the search
	recheck bool     // search for Places.Since: skip the steps that only matter before the child starts
	common  []string // git folders of the roots that an earlier search found
}

// Prepare finds the protected paths and creates the folders of private caches. A second call does
// nothing.
func (p *Policy) Prepare() error {
	if p.Level != Workspace {
		return nil
	}
	if p.Guard != nil && p.Places.found == nil {
		guard := *p.Guard
		guard.write, guard.wide = p.Write, true
		if err := guard.createOwnFolders(); err != nil {
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

// writable returns the existing folders that a child may write to, with symlinks resolved.
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
