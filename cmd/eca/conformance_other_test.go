//go:build !linux

package main

import "testing"

func conformWrites(t *testing.T) {
	t.Skip("NOT TESTED: only Linux has a pipe that keeps the boundaries of writes; run it there")
}
