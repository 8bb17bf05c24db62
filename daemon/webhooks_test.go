package daemon

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The user's configuration decides to which addresses eca serve sends notifications. An untrusted
// workspace cannot add addresses, and an entry that is not a host is reported.
func TestWebhookRules(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, ".eca"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, ".eca", "config.json"), []byte(`{"a2a": {"push": {"privateHosts": ["10.0.0.0/8"], "enabled": true}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ECA_CONFIG": `{"a2a": {"push": {"privateHosts": ["127.0.0.1", "not a host"], "denyHosts": ["evil.example"]}}}`, "XDG_CONFIG_HOME": t.TempDir()}
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Getenv: func(k string) string { return env[k] }})
	defer d.Close()
	d.Configure(nil, []string{root})
	for address, ok := range map[string]bool{
		"https://example.com": true, "http://127.0.0.1:80/x": true, "http://example.com": false, "https://evil.example": false, "https://10.0.0.1": false, "https://127.0.0.2": false,
	} {
		if err := d.CheckWebhook(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := d.PostWebhook(t.Context(), "https://10.0.0.1/x", nil, nil); err == nil || !strings.Contains(err.Error(), "a2a.push.privateHosts") {
		t.Errorf("%v", err)
	}
	var told []string
	for _, p := range d.Config().Problems {
		told = append(told, p.Cause)
	}
	if got := strings.Join(told, "\n"); !strings.Contains(got, `a2a.push.privateHosts: "not a host" is not a host`) {
		t.Errorf("%s", got)
	}
	if !d.Webhooks() {
		t.Error("notifications are off, although the user did not turn them off")
	}
	env["ECA_CONFIG"] = `{"a2a": {"push": {"enabled": false}}}`
	d.Configure(nil, []string{root})
	if d.Webhooks() {
		t.Error("notifications are on, although the user turned them off")
	}
}
