package daemon

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// checkup checks the configuration of one snapshot.
type checkup struct {
	*Daemon
	s *Snapshot
}

// Doctor checks the configuration, and whether the configured services answer. With offline, it
// sends no requests, and starts no MCP servers and no language servers. Secrets that eca knows are
// removed from the report.
func (d *Daemon) Doctor(ctx context.Context, offline bool) doctor.Report {
	offline = offline || d.Config().Conformance().Offline
	d.awaitCommands(ctx) // a slow command is not a mistake
	check := func(section, subject string, run func(context.Context) []doctor.Finding) doctor.Check {
		return doctor.Check{Section: section, Subject: subject, Run: run}
	}
	d.Extensions() // reads them, so that their mistakes are reported
	k := &checkup{d, d.current()}
	checks := []doctor.Check{
		check("Installation", "eca", k.checkInstallation),
		check("Configuration", "configuration", k.checkConfiguration),
		check("Configuration", "trust", d.CheckTrust),
	}
	checks = append(checks, d.Checks(offline)...)
	checks = append(checks, check("Models", "catalogue", k.checkCatalogue(offline)))
	checks = append(checks, k.serverChecks(offline)...)
	checks = append(checks, k.languageChecks(offline)...)
	checks = append(checks,
		check("Network", "proxies", k.checkProxies),
		check("Network", "certificates", k.checkCertificates),
		check("Network", "remote", d.remote.check),
		check("Storage", "directories", k.checkState),
		check("Storage", "chats", k.checkStore),
		check("Storage", "stored data", k.checkStoredData),
		check("Storage", "journal", k.checkJournal),
		check("Storage", "credentials", k.checkCredentials),
		check("Storage", "keychain", k.checkKeychain),
		check("Commands", "shell", k.checkShell),
		check("Commands", "sandbox", d.bounds.Check),
		check("Environment", "variables", k.checkEnvironment),
	)
	report := doctor.Run(ctx, doctor.CheckTimeout, checks)
	clean := report.Map(redact.New(d.secrets(k.s)...).String)
	for i, s := range report.Sections {
		if s.Name == serversSection { // already presentable; redacting it again would hide every argument of a server
			clean.Sections[i] = s
		}
	}
	return clean
}

func (k *checkup) checkInstallation(context.Context) []doctor.Finding {
	out := []doctor.Finding{
		doctor.Found(doctor.Note, "version", "%s%s, %s, %s/%s", k.opts.Version, doctor.Commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		doctor.Found(doctor.Note, "installed", "%s", doctor.Installation()),
		doctor.Found(doctor.Note, "command", "%s", strings.Join(k.opts.Command, " ")),
	}
	for _, root := range k.s.roots() {
		out = append(out, doctor.Found(doctor.Note, "workspace folder", "%s", root))
	}
	if len(k.s.roots()) == 0 {
		out = append(out, doctor.Found(doctor.Note, "workspace folders", "none"))
	}
	return out
}

func (k *checkup) checkConfiguration(context.Context) []doctor.Finding {
	cfg := k.s.config
	var out []doctor.Finding
	hasFindings := map[string]bool{}
	for _, f := range slices.Concat(cfg.Mistakes(), k.Misnamed()) {
		status := doctor.Problem
		if f.Severity == config.SeverityWarning {
			status = doctor.Warning
		}
		out = append(out, doctor.Found(status, f.Place(), "%s", f.Message))
		hasFindings[f.Source] = true
	}
	for _, path := range cfg.Files {
		if _, err := os.Stat(path); err == nil && !hasFindings[path] {
			out = append(out, doctor.Found(doctor.OK, "file", "%s", path))
		}
	}
	if len(out) == 0 {
		out = append(out, doctor.Found(doctor.Note, "files", "none; eca uses the defaults"))
	}
	return out
}

func (k *checkup) checkCatalogue(offline bool) func(context.Context) []doctor.Finding {
	return func(ctx context.Context) []doctor.Finding {
		switch err := k.UpdateCatalog(ctx, !offline); {
		case err != nil && ctx.Err() == nil:
			return []doctor.Finding{doctor.Found(doctor.Warning, "catalogue", "models.dev: %v; eca uses the cached or built-in catalogue", err)}
		case offline:
			return []doctor.Finding{doctor.Found(doctor.Note, "catalogue", "models.dev was not asked, because of --offline")}
		}
		return []doctor.Finding{doctor.Found(doctor.OK, "catalogue", "the prices and limits of models.dev are up to date, or no provider needs them")}
	}
}

func (k *checkup) checkProxies(context.Context) []doctor.Finding {
	var out []doctor.Finding
	proxies := k.network.Proxies()
	for _, p := range proxies.List() {
		subject := "proxy for " + p.For + "://"
		if p.Problem != "" {
			out = append(out, doctor.Found(doctor.Problem, subject, "%s", p.Problem))
			continue
		}
		with := ""
		if p.Authenticates {
			with = ", with a user"
		}
		out = append(out, doctor.Found(doctor.Note, subject, "%s%s, from %s", p.URL, with, p.Variable))
	}
	if len(out) == 0 {
		return []doctor.Finding{doctor.Found(doctor.Note, "proxy", "none")}
	}
	return append(out, doctor.Found(doctor.Note, "without a proxy", "this machine; %s", cmp.Or(proxies.Exceptions(), "nothing else (no_proxy is not set)")))
}

// certificateWarning is how long before a certificate expires it causes a warning.
const certificateWarning = 14 * 24 * time.Hour

func (k *checkup) checkCertificates(context.Context) []doctor.Finding {
	id := k.s.identity
	out := []doctor.Finding{doctor.Found(doctor.Note, "certificate authorities", "those of the system")}
	for _, p := range id.Check() { // mistakes found while reading them are among the configuration's problems
		out = append(out, doctor.Found(doctor.Problem, p.Source.Name, "%s: %s", p.Source.Path, p.Cause))
	}
	by := map[string][]netclient.Certificate{}
	for _, c := range id.Authorities() {
		by[c.Source.Name] = append(by[c.Source.Name], c)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if certs := by[name]; len(certs) > maxListedAuthorities {
			out = append(out, doctor.Found(doctor.OK, name, "%s: %d authorities", certs[0].Source.Path, len(certs)))
			continue
		}
		for _, c := range by[name] {
			out = append(out, k.validity(c, doctor.Warning)) // only a warning: it may be one of several
		}
	}
	if c, ok := id.Client(); ok {
		out = append(out, k.validity(c, doctor.Problem))
	}
	return out
}

// maxListedAuthorities is the largest number of authorities of one file that are listed one by one.
const maxListedAuthorities = 5

// validity reports until when a certificate is valid; expired is the status of an expired one.
func (k *checkup) validity(c netclient.Certificate, expired doctor.Status) doctor.Finding {
	status, text := doctor.OK, "until"
	switch left := c.Until.Sub(k.opts.Now()); {
	case left <= 0:
		status, text = expired, "expired on"
	case left < certificateWarning:
		status = doctor.Warning
	}
	return doctor.Found(status, c.Source.Name, "%s: %s, %s %s", c.Source.Path, c.Subject, text, c.Until.UTC().Format(time.DateOnly))
}

func (k *checkup) checkStore(ctx context.Context) []doctor.Finding {
	list, err := k.engine.List(ctx, chat.ByUpdated, 0)
	if errors.Is(err, store.ErrOlder) {
		return []doctor.Finding{doctor.Found(doctor.Note, "chats", "%s: %v", k.store.Path(), err)}
	}
	if err != nil {
		return []doctor.Finding{doctor.Found(doctor.Problem, "chats", "%s", strings.TrimSuffix(err.Error(), store.SeeDoctor))}
	}
	if err := k.store.CheckWritable(); err != nil {
		cause := strings.TrimSuffix(err.Error(), store.SeeDoctor)
		return []doctor.Finding{doctor.Found(doctor.Problem, "chats", "%s; the stored chats can be read (of these workspace folders: %d), but nothing is added to them", cause, len(list))}
	}
	return []doctor.Finding{doctor.Found(doctor.OK, "chats", "%s can be read; chats of these workspace folders: %d", k.store.Path(), len(list))}
}

func (k *checkup) checkCredentials(context.Context) []doctor.Finding {
	creds := k.s.storage.creds
	entered, err := creds.All()
	switch {
	case err != nil:
		return nil // the error is among the configuration's mistakes
	case len(entered) == 0:
		return []doctor.Finding{doctor.Found(doctor.OK, "credentials", "none stored")}
	}
	return []doctor.Finding{doctor.Found(doctor.OK, "credentials", "%s: credentials of %s", creds.Path(), doctor.Count(len(entered), "provider"))}
}

func (k *checkup) checkShell(ctx context.Context) []doctor.Finding {
	var out []doctor.Finding
	if path, err := k.shellOptions(k.s.config).Check(ctx); err != nil {
		out = append(out, doctor.Found(doctor.Problem, "shell", "%s: %v", path, err))
	} else {
		out = append(out, doctor.Found(doctor.OK, "shell", "%s runs commands", path))
	}
	for _, gap := range k.children.Gaps() {
		out = append(out, doctor.Found(doctor.Warning, "limits on commands", "%s", gap))
	}
	return out
}

func (k *checkup) checkEnvironment(context.Context) []doctor.Finding {
	var out []doctor.Finding
	for _, name := range settings.Variables(k.s.config) {
		value := k.opts.Getenv(name)
		switch {
		case value == "":
			continue
		case name == "ECA_CONFIG", redact.SecretName(name), slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, strings.ToLower(name)):
			value = "set, hidden" // its parts that are not secret are shown above
		}
		out = append(out, doctor.Found(doctor.Note, name, "%s", value))
	}
	if len(out) == 0 {
		out = append(out, doctor.Found(doctor.Note, "variables", "none of those that eca reads is set"))
	}
	return out
}
