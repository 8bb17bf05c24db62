package browser

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Open passes only addresses of the web to the browser, and returns an error if the browser fails.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: puts its own xdg-open in place of the browser, which only Linux looks for; run it there")
	}
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	script := "#!/bin/sh\necho \"$@\" >> " + seen + "\ncase \"$1\" in *bad*) exit 4;; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	display := func(name string) string { return map[string]string{"DISPLAY": ":0"}[name] }
	for address, want := range map[string]string{
		"https://login.example/a?b=c&d=$(touch x)": "",
		"https://login.example/bad":                "code 4",
		"file:///etc/passwd":                       "only",
		"--help":                                   "only",
		"https://":                                 "only",
	} {
		err := Open(context.Background(), address, display)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", address, err)
		}
	}
	got, err := os.ReadFile(seen)
	if err != nil || !strings.Contains(string(got), "https://login.example/a?b=c&d=$(touch x)\n") || strings.Contains(string(got), "passwd") || strings.Contains(string(got), "--help") {
		t.Errorf("opened: %s, %v", got, err)
	}
	if err := Open(context.Background(), "https://login.example/", func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "no display") {
		t.Errorf("without a display: %v", err)
	}
}

// The browser still runs when the program that opened it has ended.
func TestBrowserStays(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: puts its own xdg-open in place of the browser, which only Linux looks for; run it there")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\n(until [ -e go ]; do sleep 0.05; done; echo shown > shown) &\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Chdir(dir)
	if err := Open(context.Background(), "https://login.example/", func(string) string { return ":0" }); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile("shown"); err == nil && string(text) == "shown\n" {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the browser ended with the program that opened it")
		}
	}
}
