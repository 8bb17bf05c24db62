//go:build !linux

package mcp

// pipeHasData cannot be determined on this system.
func pipeHasData(uintptr) (pending, known bool) { return false, false }
