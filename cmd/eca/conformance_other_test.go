//go:build !linux

package main

import "testing"

func conformWrites(t *testing.T) { t.Skip("only Linux has a pipe that keeps the boundaries of writes") }
