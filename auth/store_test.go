package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret-value"

func set(t *testing.T, s *Store, provider, value string) {
	t.Helper()
	if err := s.Set(context.Background(), provider, Credential{Type: APIKey, Key: NewSecret(value)}); err != nil {
		t.Fatal(err)
	}
}

// get returns a provider's key, or an empty string.
func get(t *testing.T, s *Store, provider string) string {
	t.Helper()
	all, err := s.All()
	if err != nil {
		t.Fatal(err)
	}
	return all[provider].Key.Reveal()
}

func writeFile(t *testing.T, s *Store, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(s.Path(), []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(s.Path(), mode); err != nil {
		t.Fatal(err)
	}
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := New(dir, nil)
	if get(t, s, "openai") != "" {
		t.Error("an empty store returned a credential")
	}
	if existed, err := s.Delete(context.Background(), "openai"); existed || err != nil {
		t.Errorf("deleting nothing: %v, %v", existed, err)
	}
	want := Credential{Type: APIKey, Key: NewSecret(key), URL: "https://x.example/v1", Models: []string{"a", "b"}}
	if err := s.Set(context.Background(), "my-own", want); err != nil {
		t.Fatal(err)
	}
	set(t, s, "openai", "first")
	set(t, s, "openai", "second")
	for _, s := range []*Store{s, New(dir, nil)} {
		all, err := s.All()
		c := all["my-own"]
		if err != nil || len(all) != 2 || c.Key.Reveal() != key || c.URL != want.URL || strings.Join(c.Models, " ") != "a b" || get(t, s, "openai") != "second" {
			t.Errorf("%v, %v", all, err)
		}
	}
	if runtime.GOOS != "windows" {
		if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
	}
	if existed, err := s.Delete(context.Background(), "openai"); !existed || err != nil {
		t.Errorf("delete: %v, %v", existed, err)
	}
	if get(t, s, "openai") != "" || get(t, s, "my-own") != key {
		t.Error("one credential was to go, the other to stay")
	}
	left, _ := filepath.Glob(filepath.Join(dir, "."+fileName+"*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Two processes write at the same time, and see each other's writing.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := New(dir, nil), New(dir, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		s := []*Store{a, b}[i%2]
		wg.Go(func() { set(t, s, fmt.Sprint("p", i), fmt.Sprint("k", i)) })
	}
	wg.Wait()
	for i := range 20 {
		for _, s := range []*Store{a, b} {
			if got := get(t, s, fmt.Sprint("p", i)); got != fmt.Sprint("k", i) {
				t.Errorf("p%d: %q", i, got)
			}
		}
	}
	if _, err := b.Delete(context.Background(), "p0"); err != nil || get(t, a, "p0") != "" {
		t.Errorf("a does not see what b deleted: %v", err)
	}
}

// The error for an unusable entry names it without its content, and the entry does not change.
func TestRefused(t *testing.T) {
	good := `{"version": 1, "providers": {"p": {"type": "api-key", "key": "` + key + `"}}}`
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"empty":          {"", 0o600, "not valid JSON"},
		"cut":            {good[:len(good)-20], 0o600, "not valid JSON (byte "},
		"a key alone":    {`"` + key + `"`, 0o600, "not a JSON object"},
		"null":           {"null", 0o600, `its "version" is missing`},
		"no version":     {`{"providers": {}}`, 0o600, `its "version" is missing`},
		"newer":          {`{"version": 2, "providers": {}}`, 0o600, "newer version"},
		"providers":      {`{"version": 1, "providers": ["` + key + `"]}`, 0o600, `"providers" is not an object`},
		"entry":          {`{"version": 1, "providers": {"p": "` + key + `"}}`, 0o600, `entry for provider "p" has no "type"`},
		"entry's key":    {`{"version": 1, "providers": {"p": {"type": "api-key", "key": 7}}}`, 0o600, `entry for provider "p" has no key`},
		"too large":      {good + strings.Repeat(" ", maxSize), 0o600, "larger than"},
		"group can read": {good, 0o640, "chmod 600"},
		"all can read":   {good, 0o644, "chmod 600"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.mode != 0o600 && runtime.GOOS == "windows" {
				t.Skip("NOT TESTED: Windows has no file modes; run it on Linux or macOS")
			}
			s := New(t.TempDir(), nil)
			writeFile(t, s, c.text, c.mode)
			_, readErr := s.All()
			setErr := s.Set(context.Background(), "q", Credential{Type: APIKey, Key: NewSecret("other")})
			_, deleteErr := s.Delete(context.Background(), "p")
			for _, err := range []error{readErr, setErr, deleteErr} {
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.Path()) || strings.Contains(err.Error(), key) {
					t.Errorf("error: %v", err)
				}
			}
			if data, err := os.ReadFile(s.Path()); err != nil || string(data) != c.text {
				t.Errorf("the file was changed: %q, %v", data, err)
			}
			// After the user has corrected the file, it is used without a restart.
			writeFile(t, s, good, 0o600)
			if got := get(t, s, "p"); got != key {
				t.Errorf("after mending: %q", got)
			}
		})
	}
}

// Types of credentials and keys of the file that this version does not know are preserved.
func TestUnknownEntriesArePreserved(t *testing.T) {
	s := New(t.TempDir(), nil)
	writeFile(t, s, `{"version": 1, "hint": {"x": 1}, "providers": {"a": {"type": "saml", "key": {"refresh": "r"}, "expires": 5}, "b": {"type": "keychain", "of": "saml"}}}`, 0o600)
	if all, err := s.All(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	set(t, s, "c", key)
	set(t, s, "b", key)
	data, err := os.ReadFile(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Hint      map[string]int
		Providers map[string]map[string]any
	}
	if err := json.Unmarshal(data, &got); err != nil || got.Hint["x"] != 1 || got.Providers["a"]["expires"] != 5.0 ||
		got.Providers["b"]["type"] != APIKey || got.Providers["c"]["key"] != key {
		t.Errorf("%s, %v", data, err)
	}
}

// A link to the file stays a link.
func TestLink(t *testing.T) {
	s, elsewhere := New(t.TempDir(), nil), New(t.TempDir(), nil)
	set(t, elsewhere, "p", "old")
	needs.Symlink(t, elsewhere.Path(), s.Path())
	set(t, s, "p", "new")
	if get(t, elsewhere, "p") != "new" || get(t, s, "p") != "new" {
		t.Error("the target was not written")
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	c := Credential{Type: APIKey, Key: NewSecret(key)}
	hidden := struct{ c Credential }{c}
	var out strings.Builder
	fmt.Fprintf(&out, "%v %+v %#v %s %q %x %v %+v %#v", c, c, c, c.Key, c.Key, c.Key, hidden, hidden, &hidden)
	for _, h := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
		slog.New(h).Info("x", "credential", c, "key", c.Key, "hidden", hidden)
	}
	if strings.Contains(out.String(), key) || strings.Contains(out.String(), fmt.Sprintf("%x", key)) {
		t.Errorf("the key is shown: %s", out.String())
	}
}

// For any file, parse returns an error, or a document that can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version": 1, "x": [1], "providers": {"p": {"type": "api-key", "key": "k", "models": ["m"]}, "q": {"type": "oauth"}}}`))
	f.Add([]byte(`{"version": 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := parse(data)
		if err != nil {
			return
		}
		text, err := d.encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := parse(text)
		if err != nil || len(again.entries) != len(d.entries) || len(again.credentials) != len(d.credentials) || len(again.topLevel) < len(d.topLevel) {
			t.Errorf("%s became %s: %v", data, text, err)
		}
	})
}
