package sandbox

import "strings"

// Isolation lists the namespaces and mounts that a child can have on this system. Package proc
// determines them by starting children.
type Isolation struct {
	Mounts    bool   // a mount namespace: protected paths are read-only for the child
	Processes bool   // a PID namespace: everything that the child starts ends with the child
	Network   bool   // a network namespace with its own loopback interface
	Overlay   bool   // overlay mounts
	Without   string // why a feature is missing; empty if none is
}

// Missing names the missing features, separated by commas.
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

// Overlay is a folder over which a child has a private layer: the child's changes go to the layer.
type Overlay struct {
	Dir    string `json:"dir"`    // absolute, links resolved
	Layers string `json:"layers"` // the parent folder of layers, each for one child at a time
	Upper  string `json:"upper"`  // the layer; on the same file system as Work
	Work   string `json:"work"`   // overlayfs's work directory
}
