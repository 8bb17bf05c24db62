// Package examples has what a newcomer runs and reads: manifests, each in a folder of its
// own. It has no behaviour: it provides the files that `ecp init` writes.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed plain-agent/agent.py plain-agent/manifest.yaml
var plainAgent embed.FS

// PlainAgent has agent.py, an agent in Python, and manifest.yaml, an evaluation of it.
func PlainAgent() (fs.FS, error) { return fs.Sub(plainAgent, "plain-agent") }
