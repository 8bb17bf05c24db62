//go:build !linux

package mcp

// pipeHolds is not known on this system.
func pipeHolds(uintptr) (left, known bool) { return false, false }
