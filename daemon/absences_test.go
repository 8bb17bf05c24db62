package daemon

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// If an editor removes a file and then writes it again, the file's providers, agents and parts of plugins
// stay in effect in between. If a file stays away, they end.
func TestBrieflyMissingFilesStayInEffect(t *testing.T) {
	home, plugins := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	now := time.Now()
	sleeps, wake := make(chan struct{}, 100), make(chan struct{})
	d := New(Options{
		StateDir: t.TempDir(), CacheDir: t.TempDir(),
		Getenv: func(k string) string { return map[string]string{"XDG_CONFIG_HOME": home}[k] },
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		},
		Sleep: func(ctx context.Context, d time.Duration) error {
			sleeps <- struct{}{}
			select {
			case <-wake:
				mu.Lock()
				defer mu.Unlock()
				now = now.Add(d)
			case <-ctx.Done():
			}
			return ctx.Err()
		},
	})
	defer d.Close()
	files := []struct {
		path, text string
		counts     func() bool
	}{
		{
			filepath.Join(home, "eca", "agents", "helper.md"), "You help.",
			func() bool { return d.Config().Agents["helper"].SystemPrompt == "You help." },
		},
		{
			filepath.Join(plugins, "kit", "eca.json"), `{"agent": {"kits": {"description": "Kit's"}}}`,
			func() bool { return d.Config().Agents["kits"].Description == "Kit's" },
		},
		{
			filepath.Join(plugins, ".eca-plugin", "marketplace.json"), `{"plugins": [{"name": "kit", "source": "kit"}]}`,
			func() bool { return d.Config().Agents["kits"].Description == "Kit's" },
		},
		{
			filepath.Join(home, "eca", "config.json"), `{"providers": {"mine": {"models": {"m": {}}}}, "plugins": {"local": {"source": "` + filepath.ToSlash(plugins) + `"}, "install": ["kit"]}}`,
			func() bool { _, ok := d.Config().Providers["mine"]; return ok },
		},
	}
	for _, f := range files {
		write(f.path, f.text)
	}
	d.Configure(nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	changes := make(chan struct{}, 1000)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() { d.Watch(ctx, func() { changes <- struct{}{} }) })
	await := func(what string, met func() bool) {
		t.Helper()
		for deadline := time.After(time.Minute); !met(); {
			select {
			case <-changes:
			case <-deadline:
				t.Fatalf("%s: not within a minute", what)
			}
		}
	}
	slept := func(what string) {
		t.Helper()
		select {
		case <-sleeps:
		case <-time.After(time.Minute):
			t.Fatalf("the daemon does not wait for %s to come back", what)
		}
	}
	for _, f := range files {
		await(f.path, f.counts)
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		slept(f.path)
		d.refreshExtensions() // as each turn does
		if !f.counts() {
			t.Errorf("%s lost its effect although it was missing only for a moment", f.path)
		}
		write(f.path, f.text)
		wake <- struct{}{}
	}
	for _, f := range files {
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		slept(f.path)
		wake <- struct{}{}
		await("the end of "+f.path, func() bool { return !f.counts() })
		if f.path == files[1].path { // the next file names the plugin that this one describes
			write(f.path, f.text)
			await("the plugin again", f.counts)
		}
	}
}
