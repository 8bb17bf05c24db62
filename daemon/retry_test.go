package daemon

import (
	"strings"
	"testing"
)

// Invalid retry rules are reported with file and line, and the other rules work.
func TestBadRetryRules(t *testing.T) {
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Getenv: func(string) string { return "" }, Random: func() float64 { return 0.25 }})
	t.Cleanup(d.Close)
	d.Configure([]byte(`{"providers": {"a": {"api": "openai-chat", "url": "http://127.0.0.1:1", "models": {"m": {}},
"retryRules": [{"status": 418, "label": "Tea"}, {"errorPattern": "(("}, {"label": "all"}]}}}`), nil)
	var got []string
	for _, p := range d.Config().Problems {
		got = append(got, p.String())
	}
	if len(got) != 2 || !strings.Contains(got[0], `initializationOptions:2:49: providers.a.retryRules: rule 2 is left out: errorPattern "((" is not a valid pattern`) ||
		!strings.Contains(got[1], "rule 3 is left out: it names neither a status nor an errorPattern") {
		t.Errorf("problems: %q", got)
	}
	m, err := d.Resolve("a/m", "")
	if err != nil {
		t.Fatal(err)
	}
	p := m.Retry
	if len(p.Rules) != 1 || p.Rules[0].Label != "Tea" {
		t.Errorf("rules: %+v", p.Rules)
	}
	if p.Jitter == nil || p.Jitter() != 0.25 {
		t.Error("the retry policy does not use the daemon's source of random numbers")
	}
}
