package config

import (
	"runtime"
	"testing"
	"weak"
)

// A daemon that reads its configuration again and again keeps only the last one.
func TestPreviousIsNotKept(t *testing.T) {
	first := Load(Inputs{Getenv: func(string) string { return "" }})
	gone := weak.Make(first)
	last := Load(Inputs{Getenv: func(string) string { return "" }, Previous: first})
	first = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the configuration before is still in memory")
	}
	runtime.KeepAlive(last)
}
