//go:build !linux

package mcp

func startBlocked() string { return "not here" }

func playDaemon() {}
