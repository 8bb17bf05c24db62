package sandbox

import "strings"

// Isolation says which namespaces of its own a child can have on this system, and what can be
// done in them. Package proc finds out by doing it.
type Isolation struct {
	Mounts    bool   // a mount namespace: places are read-only for the child
	Processes bool   // a PID namespace: whatever the child starts ends with it
	Network   bool   // a network namespace: a loopback that nothing else is on
	Overlay   bool   // private layers over folders
	Without   string // why something is missing; empty if nothing is
}

// Missing names what is missing, in words.
func (i Isolation) Missing() string {
	var out []string
	for _, part := range []struct {
		there bool
		name  string
	}{{i.Mounts, "mount namespaces"}, {i.Processes, "PID namespaces"}, {i.Network, "network namespaces"}, {i.Overlay, "overlays"}} {
		if !part.there {
			out = append(out, part.name)
		}
	}
	return strings.Join(out, ", ")
}

// Overlay is a folder that a child sees with a private layer above it: what the child changes
// is in the layer.
type Overlay struct {
	Dir    string `json:"dir"`    // absolute, links resolved
	Layers string `json:"layers"` // a folder of layers, each for one child at a time
	Upper  string `json:"upper"`  // the layer; on one file system with Work
	Work   string `json:"work"`   // for the kernel
}
