// Package examples contains example manifests, each in a separate folder. It embeds the files that
// `ecp init` writes, so that the tests of the examples also cover them. It has no other behaviour.
package examples

import (
	"embed"
	"io/fs"
)

//go:embed plain-agent/agent.py plain-agent/manifest.yaml
var plainAgent embed.FS

// PlainAgent returns a folder with agent.py, an agent in Python, and manifest.yaml, its evaluation.
func PlainAgent() (fs.FS, error) { return fs.Sub(plainAgent, "plain-agent") }
