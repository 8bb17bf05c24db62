package config

import (
	"runtime"
	"testing"
	"weak"
)

// A daemon that reads its configuration again and again keeps only the last one.
func TestPreviousIsReleased(t *testing.T) {
	load := func(previous *Loaded) *Loaded {
		return Load(Inputs{Getenv: func(string) string { return "" }, Previous: previous})
	}
	last, gone := func() (*Loaded, weak.Pointer[Loaded]) {
		first := load(nil)
		return load(first), weak.Make(first)
	}()
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the configuration before is still in memory")
	}
	runtime.KeepAlive(last)
}
