package providers

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/catalog"
)

// newModels returns the models of a configuration.
func newModels(t *testing.T, options string) *Models {
	t.Helper()
	dir := t.TempDir()
	getenv := func(name string) string { return map[string]string{"MINE": "k"}[name] }
	cfg := config.Load(config.Inputs{InitOptions: []byte(options), Getenv: getenv, ConfigHome: dir})
	if len(cfg.Problems) > 0 {
		t.Fatal(cfg.Problems)
	}
	creds, network := auth.New(dir, nil), netclient.New(getenv)
	t.Cleanup(creds.Close)
	t.Cleanup(network.Close)
	return New(Options{
		Current:       func() (*config.Loaded, *catalog.Variants) { return cfg, nil },
		Credentials:   func() *auth.Store { return creds },
		AwaitCommands: func(context.Context) {}, Changed: func() {}, Network: network,
		Record: func(m llm.Model, _ string) llm.Model { return m },
		Getenv: getenv, CacheDir: dir, Log: slog.New(slog.DiscardHandler), Now: time.Now, Sleep: llm.Sleep,
	})
}

// Recordings do not contain a key that the user entered after the recording had begun.
func TestCleanKnowsLogins(t *testing.T) {
	m := newModels(t, `{"providers": {"keyless": {"api": "openai-chat", "url": "https://keyless.example", "models": {"m": {}}}}}`)
	l := NewLogins(m, func() bool { return true }, func() {})
	t.Cleanup(l.EndProviderLogins)
	const key = "an_unusual_key"
	if _, err := l.LoginInput(t.Context(), "keyless", map[string]string{"api-key": key}); err != nil {
		t.Fatal(err)
	}
	if got := m.clean("say " + key); got != "say [REDACTED]" {
		t.Errorf("recorded: %s", got)
	}
}

// If eca exec gives up after its time for retries, the error names the setting that replaces this limit.
func TestGivingUpNamesItsLimit(t *testing.T) {
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	defer busy.Close()
	for retry, want := range map[string]string{
		``: "eca gave up, because it retries for 1ns at most; providers.a.retry.maxRetries sets a number of retries instead",
		`"retry": {"maxRetries": 1, "baseDelayMs": 1},`: "",
	} {
		m := newModels(t, `{"providers": {"a": {"api": "openai-chat", `+retry+` "key": "k", "url": "`+busy.URL+`", "fetchModels": false, "firstByteTimeoutSeconds": 60, "models": {"m": {}}}}}`)
		m.opts.RetryTotal = 1
		v := m.view()
		model, err := v.client("a", v.all["a"])
		if err != nil {
			t.Fatal(err)
		}
		failed := false
		for _, err := range model.Stream(t.Context(), llm.Request{Model: "m"}) {
			failed = failed || err != nil
			if err != nil && (!strings.Contains(err.Error(), "503") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "gave up") != (want != "")) {
				t.Errorf("%s: %v", retry, err)
			}
		}
		if !failed {
			t.Errorf("%s: no error", retry)
		}
	}
}

// If the provider asks for a longer pause than eca accepts, the message names every key that applies.
func TestLongPauseNamesItsLimits(t *testing.T) {
	const wait, total = "eca waits for 1m0s at most before it repeats a request; providers.a.rateLimitMaxWaitSeconds", "eca gave up, because it retries for 2m0s at most; providers.a.retry.maxRetries"
	for _, c := range []struct {
		config, pause string
		wait, total   bool
	}{
		{``, "3600", true, true},
		{``, "90", true, false},
		{`"retry": {"maxRetries": 3},`, "3600", true, false},
		{`"rateLimitMaxWaitSeconds": 4000,`, "3600", false, true},
	} {
		busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.pause)
			w.WriteHeader(http.StatusTooManyRequests)
		}))
		m := newModels(t, `{"providers": {"a": {"api": "openai-chat", `+c.config+` "key": "k", "url": "`+busy.URL+`", "fetchModels": false, "models": {"m": {}}}}}`)
		m.opts.RetryTotal = 2 * time.Minute
		v := m.view()
		model, err := v.client("a", v.all["a"])
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, err := range model.Stream(t.Context(), llm.Request{Model: "m"}) {
			if err != nil {
				said += err.Error()
			}
		}
		busy.Close()
		if !strings.Contains(said, "429") || strings.Contains(said, wait) != c.wait || strings.Contains(said, total) != c.total {
			t.Errorf("%s after %s: %s", c.config, c.pause, said)
		}
	}
}

// The remedy for a refused key names what the key in the configuration refers to, without its text.
func TestRemedyNamesTheSourceOfTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("k"), 0o600); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"${env:MINE}":                            "which takes it from the environment variable MINE: change it there",
		"${env:OTHER:${env:MINE}}":               "which takes it from the environment variable MINE: change it there",
		"${file:" + filepath.ToSlash(file) + "}": "which takes it from the file " + filepath.ToSlash(file) + ": change it there",
		"${env:OTHER:sk-secret}":                 "The key is providers.a.key of initializationOptions:1: change it there",
		"sk-secret":                              "The key is providers.a.key of initializationOptions:1: change it there",
	} {
		m := newModels(t, `{"providers": {"a": {"api": "openai-chat", "key": "`+key+`", "url": "http://127.0.0.1:1"}}}`)
		got := m.view().remedy("a", &llm.Error{Kind: llm.ErrAuth, Status: http.StatusUnauthorized})
		if !strings.Contains(got, want) || !strings.Contains(got, "providers.a.key") || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", key, got)
		}
	}
}

// If the key in the configuration has no value, the remedy for a 401 says so, and does not say that a key
// is missing.
func TestRemedyNamesAKeyWithoutAValue(t *testing.T) {
	m := newModels(t, `{"providers": {"a": {"api": "openai-chat", "key": "", "url": "http://127.0.0.1:1"}}}`)
	got := m.view().remedy("a", &llm.Error{Kind: llm.ErrAuth, Status: http.StatusUnauthorized})
	if !strings.Contains(got, "No key was sent, because providers.a.key of initializationOptions:1 has no value") {
		t.Error(got)
	}
}

func TestLimitsAndRetry(t *testing.T) {
	m := newModels(t, `{"streamIdleTimeoutSeconds": 7, "connectTimeoutSeconds": 0, "providers": {"a": {"api": "openai-chat", "streamIdleTimeoutSeconds": 0.5,
		"retry": {"maxRetries": 1, "baseDelayMs": 5, "backoffMultiplier": 3, "maxDelayMs": 9, "prematureStopMaxRetries": 0, "maxAutoContinues": 7}, "rateLimitMaxWaitSeconds": 4}}}`)
	p := m.view().cfg.Providers["a"]
	want := llm.Limits{Connect: 0, FirstByte: 300 * time.Second, Idle: 500 * time.Millisecond, Total: 3600 * time.Second}
	if got := m.view().limits(p); got != want {
		t.Errorf("limits %+v", got)
	}
	// Limits that the configuration does not set have their defaults.
	usual := newModels(t, `{"providers": {"a": {"api": "openai-chat"}}}`).view()
	want = llm.Limits{Connect: 15 * time.Second, FirstByte: 300 * time.Second, Idle: 120 * time.Second, Total: 3600 * time.Second}
	if got := usual.limits(usual.cfg.Providers["a"]); got != want || llm.DefaultLimits() != want {
		t.Errorf("the limits without configuration are %+v, and llm.DefaultLimits %+v", got, llm.DefaultLimits())
	}
	// In a program without a user who could stop a request, the default limit for the first byte is lower. A
	// limit that the user set stays the same.
	usual.opts.RetryTotal = time.Minute
	set := newModels(t, `{"firstByteTimeoutSeconds": 200, "providers": {"a": {"api": "openai-chat"}}}`).view()
	set.opts.RetryTotal = time.Minute
	if a, b := usual.limits(usual.cfg.Providers["a"]).FirstByte, set.limits(set.cfg.Providers["a"]).FirstByte; a != time.Minute || b != 200*time.Second {
		t.Errorf("limits of the first byte: %s, and %s if it is set", a, b)
	}
	r := m.view().retryPolicy(p)
	if r.MaxRetries != 1 || r.MaxPremature != 0 || r.MaxContinues != 7 || r.BaseDelay != 5*time.Millisecond || r.Multiplier != 3 || r.MaxDelay != 9*time.Millisecond || r.MaxWait != 4*time.Second {
		t.Errorf("retry %+v", r)
	}
}

// The message about a key that could not be checked says that the key is stored, and why.
func TestUncheckedKeyNotice(t *testing.T) {
	const again = " `eca doctor` checks it again."
	for want, err := range map[string]error{
		"The key is stored without a check: fake did not answer within 10s." + again:         context.DeadlineExceeded,
		`The key is stored without a check: fake: host "far.example" was not found.` + again: &llm.Error{Kind: llm.ErrUnreachable, Message: `fake: host "far.example" was not found`},
	} {
		if got := uncheckedNotice("fake", "https://far.example", err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A request for one server gets no token that was issued for another server, whether the token is valid
// or has expired.
func TestTokensAreBound(t *testing.T) {
	m := newModels(t, `{"providers": {"acme": {"api": "openai-chat", "url": "https://acme.example/v1", "auth": {"clientId": "c", "tokenUrl": "http://127.0.0.1:1/token"}, "models": {"m": {}}}}}`)
	p := m.view().cfg.Providers["acme"]
	for name, expires := range map[string]time.Time{"good": time.Now().Add(time.Hour), "to be renewed": time.Now().Add(-time.Hour)} {
		for what, change := range map[string]func(*config.Provider, *auth.Binding){
			"the same":       func(*config.Provider, *auth.Binding) {},
			"another server": func(p *config.Provider, _ *auth.Binding) { p.URL = "https://acme.example.evil.example/v1" },
			"without TLS":    func(p *config.Provider, _ *auth.Binding) { p.URL = "http://acme.example/v1" },
			"another client": func(_ *config.Provider, b *auth.Binding) { b.ClientID = "d" },
		} {
			asked, b := p, auth.Binding{TokenURL: "http://127.0.0.1:1/token", ClientID: "c", Provider: "https://acme.example"}
			change(&asked, &b)
			c := auth.Credential{Type: auth.OAuth, Access: auth.NewSecret("access"), Refresh: auth.NewSecret("refresh"), Expires: expires, For: b}
			if err := m.opts.Credentials().Set(t.Context(), "acme", c); err != nil {
				t.Fatal(err)
			}
			got, err := logins{m.view()}.token(t.Context(), "acme", asked, "")
			switch {
			case what == "the same" && name == "good":
				if got != "access" || err != nil {
					t.Errorf("%s, %s: %q, %v", name, what, got, err)
				}
			case what == "the same":
				if err == nil || errors.Is(err, errOtherServer) { // renewing fails, because the test has no login server
					t.Errorf("%s, %s: %q, %v", name, what, got, err)
				}
			case got != "" || !errors.Is(err, errOtherServer):
				t.Errorf("%s, %s: %q, %v", name, what, got, err)
			}
		}
	}
}

// eca asks an unknown model to reason if the API accepts this request from every model.
func TestLikelyReasons(t *testing.T) {
	for api, want := range map[string]string{
		"openai-chat": "new claude-opus-9", "openai-responses": "new claude-opus-9", "anthropic": "new claude-opus-9",
		"bedrock": "claude-opus-9", "openai": "new claude-opus-9",
	} {
		var got []string
		for _, model := range []string{"new", "gpt-4x", "claude-3-haiku", "claude-opus-9"} {
			if formatOf(api).reasons(model) {
				got = append(got, model)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", api, got)
		}
	}
	if formatOf("google").reasons != nil || formatOf("ollama").reasons != nil {
		t.Error("unknown models of google or ollama are asked to reason, which models without reasoning refuse")
	}
}

// The configuration accepts the wire formats that have a row, and no others.
func TestWireFormatsOfTheConfigurationHaveRows(t *testing.T) {
	rows, accepted := formats(), config.WireFormats()
	for _, api := range accepted {
		if rows[api].client == nil {
			t.Errorf("the configuration accepts %s, which has no client: add a row to formats (daemon/providers/formats.go)", api)
		}
	}
	for api := range rows {
		if !slices.Contains(accepted, api) {
			t.Errorf("the configuration does not accept %s: add it to the tag enum of the field API of Provider (config/config.go)", api)
		}
	}
}
