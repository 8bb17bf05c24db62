package daemon

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/fetch"
)

// pages returns the getter for web pages that the model reads.
func (s *services) pages(cfg *config.Config) *fetch.Getter {
	w := cfg.ToolCall.WebFetch
	return fetch.New(s.network, fetch.Rules{Allow: w.AllowHosts, Deny: w.DenyHosts, Private: w.PrivateHosts}, "eca (+https://github.com/seed-dec29ce4/eca)")
}

// webAccess sends notifications to webhook addresses that callers of eca serve specify.
type webAccess struct{ *services }

// Webhooks reports whether callers of eca serve may specify webhook addresses.
func (w *webAccess) Webhooks() bool { return w.Config().A2A.Push.Enabled }

// CheckWebhook returns an error if notifications must not be sent to an address (docs/a2a.md).
func (w *webAccess) CheckWebhook(address string) error { return w.webhooks().Check(address) }

// PostWebhook sends a notification to a webhook address and returns the HTTP status.
func (w *webAccess) PostWebhook(ctx context.Context, address string, header http.Header, body []byte) (status int, err error) {
	return w.webhooks().Post(ctx, address, header, body)
}

// webhooks returns a poster with the rules of the current configuration.
func (w *webAccess) webhooks() *fetch.Poster {
	p := w.Config().A2A.Push
	return fetch.NewPoster(w.network, fetch.Rules{Allow: p.AllowHosts, Deny: p.DenyHosts, Private: p.PrivateHosts, Section: "a2a.push"}, "eca/"+w.opts.Version)
}

// PushServices returns the sender of notifications to the push services of browsers. Their addresses
// come from paired devices.
func (w *webAccess) PushServices() *fetch.Poster {
	return fetch.NewPoster(w.network, fetch.Rules{}, "eca/"+w.opts.Version)
}

// badHosts returns problems for entries of toolCall.webFetch and a2a.push that are not hosts: an
// invalid entry does not restrict anything.
func badHosts(cfg *config.Loaded) []config.Problem {
	w, p := cfg.ToolCall.WebFetch, cfg.A2A.Push
	var out []config.Problem
	for _, list := range []struct {
		section, key string
		list         []string
	}{
		{"toolCall.webFetch", "allowHosts", w.AllowHosts},
		{"toolCall.webFetch", "denyHosts", w.DenyHosts},
		{"toolCall.webFetch", "privateHosts", w.PrivateHosts},
		{"a2a.push", "allowHosts", p.AllowHosts},
		{"a2a.push", "denyHosts", p.DenyHosts},
		{"a2a.push", "privateHosts", p.PrivateHosts},
	} {
		for i, host := range list.list {
			if err := fetch.Valid(host); err != nil {
				path := append(strings.Split(list.section, "."), list.key, strconv.Itoa(i))
				out = append(out, cfg.Problem(path, "%s.%s: %.100q is not a host: %v", list.section, list.key, host, err))
			}
		}
	}
	return out
}

// filesToWatch lists the files to watch for changes. It leaves out relative paths of certificates, which
// variables can contain.
func (r *reader) filesToWatch() []string {
	s := r.current()
	files := append(slices.Clone(s.config.Files), s.storage.creds.Path(), s.storage.serverCreds.Path(), r.trustedFolders.File.Path)
	files = append(files, s.extensions.Files...)
	files = append(files, s.plugins.Watch()...)
	files = append(files, r.claudeSettings(s.config, s.roots())...)
	for _, path := range s.identity.Paths() {
		if filepath.IsAbs(path) {
			files = append(files, path)
		}
	}
	return files
}
