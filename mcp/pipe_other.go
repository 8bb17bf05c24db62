//go:build !linux

package mcp

// pipeHolds can not be known here.
func pipeHolds(uintptr) (left, known bool) { return false, false }
