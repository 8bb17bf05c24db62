package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// checkTime bounds a check-up; its checks run at once.
const checkTime = 15 * time.Second

// Doctor checks what is configured, and whether it answers; offline asks nobody. No text
// of the report has a secret in it that eca knows.
func (d *Daemon) Doctor(ctx context.Context, offline bool) doctor.Report {
	if d.Config().Env == config.EnvTest {
		offline = true // suites that compare traffic
	}
	one := func(section, subject string, run func(context.Context) []doctor.Finding) doctor.Check {
		return doctor.Check{Section: section, Subject: subject, Run: run}
	}
	checks := []doctor.Check{
		one("Installation", "eca", d.checkInstallation),
		one("Configuration", "configuration", d.checkConfiguration),
		one("Configuration", "trust", d.checkTrust),
		one("Models", "default model", d.checkDefaultModel),
	}
	checks = append(checks, d.providerChecks(offline)...)
	checks = append(checks, one("Models", "catalogue", d.checkCatalogue(offline)))
	checks = append(checks, d.serverChecks(offline)...)
	checks = append(checks,
		one("Network", "proxies", d.checkProxies),
		one("Network", "certificates", d.checkCertificates),
		one("Storage", "directories", d.checkState),
		one("Storage", "chats", d.checkStore),
		one("Storage", "credentials", d.checkCredentials),
		one("Storage", "keychain", d.checkKeychain),
		one("Commands", "shell", d.checkShell),
		one("Commands", "sandbox", d.checkSandbox),
		one("Environment", "variables", d.checkEnvironment),
	)
	report := doctor.Run(ctx, checkTime, checks)
	clean := report.Map(redact.New(d.secrets()...).String)
	for i, s := range report.Sections {
		if s.Name == serversSection { // presentable already; each argument of a server counts as secret otherwise
			clean.Sections[i] = s
		}
	}
	return clean
}

func finding(s doctor.Status, subject, format string, args ...any) doctor.Finding {
	return doctor.Finding{Status: s, Subject: subject, Text: fmt.Sprintf(format, args...)}
}

func (d *Daemon) checkInstallation(context.Context) []doctor.Finding {
	out := []doctor.Finding{
		finding(doctor.Note, "version", "%s, %s, %s/%s", d.opts.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH),
		finding(doctor.Note, "command", "%s", strings.Join(d.opts.Command, " ")),
	}
	for _, root := range d.Roots() {
		out = append(out, finding(doctor.Note, "workspace folder", "%s", root))
	}
	if len(d.Roots()) == 0 {
		out = append(out, finding(doctor.Note, "workspace folders", "none"))
	}
	return out
}

func (d *Daemon) checkConfiguration(context.Context) []doctor.Finding {
	cfg := d.Config()
	var out []doctor.Finding
	var broken []string
	for _, p := range cfg.Problems {
		out = append(out, finding(doctor.Problem, p.Origin.String(), "%s", p.Cause))
		broken = append(broken, p.Source)
	}
	for _, path := range cfg.Files {
		if _, err := os.Stat(path); err == nil && !slices.Contains(broken, path) {
			out = append(out, finding(doctor.OK, "file", "%s", path))
		}
	}
	if len(out) == 0 {
		out = append(out, finding(doctor.Note, "files", "none; the defaults count"))
	}
	return out
}

func (d *Daemon) checkDefaultModel(context.Context) []doctor.Finding {
	cfg := d.Config()
	id := cfg.SpelledModel(d.models.defaultID())
	wanted := cfg.SpelledModel(cfg.DefaultModel)
	origin, _ := cfg.Origin("defaultModel")
	out := finding(doctor.OK, "default model", "%s; defaultModel is not set, chosen among those that can be used", id)
	switch {
	case id == "" && wanted != "":
		out = finding(doctor.Problem, "default model", "%s (%s) cannot be used, nor can any other model: see the providers below", wanted, origin)
	case id == "":
		out = finding(doctor.Warning, "default model", "none: no provider that can be used has a model")
	case id == wanted:
		out.Text = id + ", as " + origin.String() + " says"
	case wanted != "":
		out = finding(doctor.Problem, "default model", "%s (%s) can not be used; %s is used", wanted, origin, id)
	case id == demoModel:
		out = finding(doctor.Warning, "default model", "%s: no provider can be used, so answers are a script; log in to one (eca login PROVIDER) or set its key, such as ANTHROPIC_API_KEY", id)
	}
	return []doctor.Finding{out, finding(doctor.Note, "models to choose from", "%d (before the providers below were asked)", len(d.ModelChoice().IDs))}
}

func (d *Daemon) checkCatalogue(offline bool) func(context.Context) []doctor.Finding {
	return func(ctx context.Context) []doctor.Finding {
		switch err := d.models.refreshedCatalog(ctx, !offline); {
		case err != nil && ctx.Err() == nil:
			return []doctor.Finding{finding(doctor.Warning, "catalogue", "models.dev: %v; what is cached or built in counts", err)}
		case offline:
			return []doctor.Finding{finding(doctor.Note, "catalogue", "models.dev was not asked")}
		}
		return []doctor.Finding{finding(doctor.OK, "catalogue", "models.dev is up to date, or not needed")}
	}
}

func (d *Daemon) checkProxies(context.Context) []doctor.Finding {
	var out []doctor.Finding
	proxies := d.network.Proxies()
	for _, p := range proxies.List() {
		subject := "proxy for " + p.For + "://"
		if p.Problem != "" {
			out = append(out, finding(doctor.Problem, subject, "%s", p.Problem))
			continue
		}
		with := ""
		if p.Authenticates {
			with = ", with a user"
		}
		out = append(out, finding(doctor.Note, subject, "%s%s, from %s", p.URL, with, p.Variable))
	}
	if len(out) == 0 {
		return []doctor.Finding{finding(doctor.Note, "proxy", "none")}
	}
	return append(out, finding(doctor.Note, "without a proxy", "this machine; %s", cmp.Or(proxies.Exceptions(), "nothing else (no_proxy is not set)")))
}

// soon is how long before its end a certificate is worth a warning.
const soon = 14 * 24 * time.Hour

func (d *Daemon) checkCertificates(context.Context) []doctor.Finding {
	id := d.identity.Load()
	out := []doctor.Finding{finding(doctor.Note, "authorities", "the system's")}
	for _, p := range id.Check() { // what reading them found is among the configuration's problems
		out = append(out, finding(doctor.Problem, p.Source.Name, "%s: %s", p.Source.Path, p.Cause))
	}
	by := map[string][]netclient.Certificate{}
	for _, c := range id.Authorities() {
		by[c.Source.Name] = append(by[c.Source.Name], c)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		if certs := by[name]; len(certs) > few {
			out = append(out, finding(doctor.OK, name, "%s: %d authorities", certs[0].Source.Path, len(certs)))
			continue
		}
		for _, c := range by[name] {
			out = append(out, d.validity(c, doctor.Warning)) // perhaps one of several
		}
	}
	if c, ok := id.Client(); ok {
		out = append(out, d.validity(c, doctor.Problem))
	}
	return out
}

// few is up to which number the authorities of a file are listed.
const few = 5

// validity says until when a certificate is valid; expired is what it is if that is over.
func (d *Daemon) validity(c netclient.Certificate, expired doctor.Status) doctor.Finding {
	status, text := doctor.OK, "until"
	switch left := c.Until.Sub(d.opts.Now()); {
	case left <= 0:
		status, text = expired, "expired on"
	case left < soon:
		status = doctor.Warning
	}
	return finding(status, c.Source.Name, "%s: %s, %s %s", c.Source.Path, c.Subject, text, c.Until.UTC().Format(time.DateOnly))
}

func (d *Daemon) checkStore(ctx context.Context) []doctor.Finding {
	list, err := d.engine.List(ctx, chat.ByUpdated, 0)
	if err != nil {
		return []doctor.Finding{finding(doctor.Problem, "chats", "%s: %s", d.store.Path(), strings.TrimSuffix(err.Error(), store.SeeDoctor))}
	}
	return []doctor.Finding{finding(doctor.OK, "chats", "%s can be read; %d of these workspace folders", d.store.Path(), len(list))}
}

func (d *Daemon) checkCredentials(context.Context) []doctor.Finding {
	creds := d.creds.Load()
	entered, err := creds.All()
	if err != nil {
		return []doctor.Finding{finding(doctor.Problem, "credentials", "%s: %v", creds.Path(), err)}
	}
	if len(entered) == 0 {
		return []doctor.Finding{finding(doctor.OK, "credentials", "none stored")}
	}
	return []doctor.Finding{finding(doctor.OK, "credentials", "%s: of %s", creds.Path(), counted(len(entered), "provider"))}
}

func (d *Daemon) checkShell(ctx context.Context) []doctor.Finding {
	var out []doctor.Finding
	if path, err := d.shellOptions(d.Config().Config).Check(ctx); err != nil {
		out = append(out, finding(doctor.Problem, "shell", "%s: %v", path, err))
	} else {
		out = append(out, finding(doctor.OK, "shell", "%s runs commands", path))
	}
	for _, gap := range d.children.Gaps() {
		out = append(out, finding(doctor.Warning, "what commands start", "%s", gap))
	}
	return out
}

func (d *Daemon) checkEnvironment(context.Context) []doctor.Finding {
	var out []doctor.Finding
	for _, name := range d.variables() {
		value := d.opts.Getenv(name)
		switch {
		case value == "":
			continue
		case name == "ECA_CONFIG", redact.SecretName(name), slices.Contains([]string{"http_proxy", "https_proxy", "all_proxy"}, strings.ToLower(name)):
			value = "set, hidden" // what is not secret in it stands above
		}
		out = append(out, finding(doctor.Note, name, "%s", value))
	}
	if len(out) == 0 {
		out = append(out, finding(doctor.Note, "variables", "none of those that eca reads is set"))
	}
	return out
}

// reach asks for anything at a URL: whatever comes back, somebody answers.
func reach(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("the url is invalid")
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
