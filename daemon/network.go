package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/fetch"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// httpVersion1 is the providers.<name>.httpClient.version that forbids HTTP/2.
const httpVersion1 = "http-1.1"

// http returns the client for a provider whose connections must stand within a limit.
func (m *models) http(p config.Provider, connect time.Duration) *http.Client {
	return m.network.Client(netclient.Options{Connect: connect, HTTP1: p.HTTPClient.Version == httpVersion1})
}

// pages gets what the model wants to read of the web.
func (d *Daemon) pages(cfg *config.Config) *fetch.Getter {
	w := cfg.ToolCall.WebFetch
	return fetch.New(d.network, fetch.Rules{Allow: w.AllowHosts, Deny: w.DenyHosts, Private: w.PrivateHosts}, "eca (+https://github.com/seed-dec29ce4/eca)")
}

// Webhooks says whether callers of eca serve can name addresses that are notified.
func (d *Daemon) Webhooks() bool { return d.Config().A2A.Push.Enabled }

// CheckWebhook says why nothing would be sent to an address that a caller of eca serve
// names (docs/a2a.md).
func (d *Daemon) CheckWebhook(address string) error { return d.webhooks().Check(address) }

// PostWebhook sends a notification to such an address and returns the status of the answer.
func (d *Daemon) PostWebhook(ctx context.Context, address string, header http.Header, body []byte) (status int, err error) {
	return d.webhooks().Post(ctx, address, header, body)
}

// webhooks sends notifications by the rules that count now.
func (d *Daemon) webhooks() *fetch.Poster {
	p := d.Config().A2A.Push
	return fetch.NewPoster(d.network, fetch.Rules{Allow: p.AllowHosts, Deny: p.DenyHosts, Private: p.PrivateHosts, Section: "a2a.push"}, "eca/"+d.opts.Version)
}

// badHosts names entries of toolCall.webFetch and a2a.push that are no hosts. One that
// should restrict must not be overlooked.
func badHosts(cfg *config.Loaded) []config.Problem {
	w, p := cfg.ToolCall.WebFetch, cfg.A2A.Push
	var out []config.Problem
	for _, of := range []struct {
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
		for i, host := range of.list {
			if err := fetch.Valid(host); err != nil {
				path := append(strings.Split(of.section, "."), of.key, strconv.Itoa(i))
				out = append(out, cfg.Problem(path, "%s.%s: %.100q is not a host: %v", of.section, of.key, host, err))
			}
		}
	}
	return out
}

// certificates names the files of the network section, or of the variables that stand in
// for it (eca-features 8). All authorities count together.
func certificates(cfg *config.Loaded, getenv func(string) string) netclient.Files {
	key := func(name, value, variable string) netclient.Source {
		origin, _ := cfg.Origin("network", name)
		if value != "" || variable == "" {
			return netclient.Source{Name: "network." + name, Path: userPath(value, origin)}
		}
		if path := getenv(variable); path != "" {
			return netclient.Source{Name: variable, Path: path}
		}
		return netclient.Source{Name: "network." + name}
	}
	n := cfg.Network
	files := netclient.Files{
		Cert:       key("clientCert", n.ClientCert, "ECA_CLIENT_CERT"),
		Key:        key("clientKey", n.ClientKey, "ECA_CLIENT_KEY"),
		Passphrase: cmp.Or(n.ClientKeyPassphrase, getenv("ECA_CLIENT_KEY_PASSPHRASE")),
	}
	for _, s := range []netclient.Source{
		key("caCertFile", n.CACertFile, ""),
		{Name: "SSL_CERT_FILE", Path: getenv("SSL_CERT_FILE")},
		{Name: "NODE_EXTRA_CA_CERTS", Path: getenv("NODE_EXTRA_CA_CERTS")},
	} {
		if s.Path != "" {
			files.CA = append(files.CA, s)
		}
	}
	return files
}

// watched lists the files whose changes count. Of relative paths, as variables can name
// them, nobody says where they begin.
func (d *Daemon) watched() []string {
	files := append(slices.Clone(d.Config().Files), d.creds.Load().Path(), d.servedCreds.Load().Path(), d.record.Path())
	files = append(files, d.set.Load().Files...)
	files = append(files, d.plugged.Load().Watch()...)
	files = append(files, d.claudeSettings(d.Config(), d.Roots())...)
	for _, path := range d.identity.Load().Paths() {
		if filepath.IsAbs(path) {
			files = append(files, path)
		}
	}
	return files
}

// userPath is a path as users write it in a configuration: ~ is the home folder, and a
// file's relative paths begin where the file is.
func userPath(path string, origin config.Origin) string {
	if path == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) && filepath.IsAbs(origin.Source) {
		return filepath.Join(filepath.Dir(origin.Source), path)
	}
	return path
}

// useCertificates puts the certificates that a configuration names into effect, and adds
// what is wrong with them to its problems. It reports whether they are others than before.
func (d *Daemon) useCertificates(cfg *config.Loaded) (changed bool) {
	files := certificates(cfg, d.opts.Getenv)
	id, problems := netclient.Read(files)
	for _, p := range problems {
		origin := config.Origin{Source: p.Source.Name}
		if name, ok := strings.CutPrefix(p.Source.Name, "network."); ok {
			if o, ok := cfg.Origin("network", name); ok {
				origin = o
			}
			p.Cause = fmt.Sprintf("%s: %s; it is ignored", p.Source.Name, p.Cause)
		}
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: origin, Cause: p.Cause})
	}
	d.identity.Store(id)
	return d.network.Use(id)
}
