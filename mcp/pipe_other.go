//go:build !linux

package mcp

// pipeHolds cannot be determined on this system.
func pipeHolds(uintptr) (left, known bool) { return false, false }
