package consent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestDifference(t *testing.T) {
	was := Launch{Command: "a", Args: []string{"x y"}, Env: map[string]string{"K": "1", "L": "1"}}
	for want, now := range map[string]Launch{
		"":                            was,
		"command was `a` and is `b`":  {Command: "b", Args: was.Args, Env: was.Env},
		"args was `x y` and is `x y`": {Command: "a", Args: []string{"x", "y"}, Env: was.Env},
		"command was `a` and is nothing; args was `x y` and is nothing; url was nothing and is `u`": {URL: "u", Env: was.Env},
		"env has a different K; env has no L any more; env has M now":                               {Command: "a", Args: was.Args, Env: map[string]string{"K": "2", "M": "1"}},
	} {
		if got := was.Difference(now, func(text string) string { return text }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	secret := func(text string) string { return strings.ReplaceAll(text, "sk-1", "***") }
	if got := (Launch{URL: "https://u/?key=sk-1"}).Difference(Launch{URL: "https://v/?key=sk-1"}, secret); got != "url was `https://u/?key=***` and is `https://v/?key=***`" {
		t.Error(got)
	}
	if Sum("a", "b") == Sum("ab") {
		t.Error("sums")
	}
}

func TestServers(t *testing.T) {
	now := time.Unix(1e9, 0)
	dir := filepath.Join(t.TempDir(), "state")
	s := NewServers(dir, func() time.Time { return now })
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			err := NewServers(dir, func() time.Time { return now }).Change("k", func(s *Server) { s.Tools[fmt.Sprint(i)] = Tool{Sum: "x"} })
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, err := s.Get("k"); err != nil || len(got.Tools) != 20 || got.Since.Unix() != 1e9 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := s.Forget("k"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get("k"); err != nil || got.Tools != nil {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(s.File.Path, []byte(`{"version":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get("k"); err == nil {
		t.Error("a record of another version was read")
	}
	if err := s.Change("k", func(*Server) {}); err == nil {
		t.Error("a record of another version was overwritten")
	}
}
