package settings

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// Certificates reads the certificates that a configuration names, and adds mistakes in them to its
// problems.
func Certificates(cfg *config.Loaded, getenv func(string) string) *netclient.Identity {
	id, problems := netclient.Read(certificates(cfg, getenv))
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
	return id
}

// certificates returns the certificate files named by the network section, or by the variables that
// replace it (eca-features.md 8). The authorities of all files are used together.
func certificates(cfg *config.Loaded, getenv func(string) string) netclient.Files {
	key := func(name, value, variable string) netclient.Source {
		origin, _ := cfg.Origin("network", name)
		if value != "" || variable == "" {
			return netclient.Source{Name: "network." + name, Path: config.UserPath(value, origin)}
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
