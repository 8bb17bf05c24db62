//go:build !linux

package proc

func childOfTest([]string) bool { return false }
