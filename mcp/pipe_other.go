//go:build !linux

package mcp

// pipeHolds cannot be known here.
func pipeHolds(uintptr) (left, known bool) { return false, false }
