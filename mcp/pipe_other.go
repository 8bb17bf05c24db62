//go:build !linux

package mcp

// pipeHolds can not say of a pipe that all was read from it.
func pipeHolds(uintptr) bool { return true }
