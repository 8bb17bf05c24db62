// Package servers connects MCP to the rest of the daemon: it passes the configured servers to
// package mcp, expands their configuration when they are started, asks the user about servers that
// have changed, logs in to them, edits their configuration, and passes on their prompts, resources
// and instructions.
//
// It guarantees that a server from the user's own files is started only with a command or URL that
// the user agreed to, and that a tool whose description has changed is not used before the user
// agrees to the new one. Package mcp implements the protocol and runs the processes.
//
// The entry points are New and Servers.ApplyServers.
package servers

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	pending "github.com/seed-dec29ce4/eca/daemon/login"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/mcp/login"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Options are the dependencies of Servers. All must be set.
type Options struct {
	Config      func() *config.Loaded
	Workspace   func() *workspace.Workspace
	Policy      func() *permission.Policy
	Questions   func() ask.Client // nil: the client shows none
	Credentials func() *auth.Store
	Edits       Edits
	ForgetTools func(server string) error      // deletes remembered approvals of a server's tools
	ConfigFile  string                         // --config-file
	Agreed      *consent.ServerStore           // records which servers and tools the user agreed to
	Environ     func(context.Context) []string // variables that commands get in addition to eca's own environment
	Clean       func(string) string            // removes credentials from what the model reads
	Presentable func(string) string            // the same for texts about servers that users read
	// Sample answers a server's request for a completion (MCP sampling).
	Sample      func(ctx context.Context, chatID, model string, r llm.Request) (mcp.Sampled, error)
	BeforeStart func(server string, credentials []string) // called before each start, with the credentials that the server gets
	Changed     func()
	OpenURL     func(ctx context.Context, url string) error
	Network     *netclient.Network
	Children    *proc.Pool
	Getenv      func(string) string
	Version     string
	Log         *slog.Logger
	Now         func() time.Time
}

// Edits changes configuration files. A change is in effect when the method returns.
type Edits interface {
	// Edit changes a file.
	Edit(file string, changes ...config.Change) error
	// Drop removes the value at a path of keys from every file that has it.
	Drop(path ...string) error
}

// Servers manages the configured MCP servers.
type Servers struct {
	opts       Options
	manager    *mcp.Manager
	agreements *agreements
	logins     *pending.Attempts // pending logins
	accounts   *login.Logins     // stored logins

	mu           sync.Mutex                // guards lastAccounts
	lastAccounts map[string]*login.Account // by the server's name, as of its last start
}

// New returns Servers without running servers. EndServerLogins and CloseMCPServers must be called.
func New(o Options) *Servers {
	sv := &Servers{opts: o, logins: pending.New(), lastAccounts: map[string]*login.Account{}}
	sv.agreements = newAgreements(o)
	sv.accounts = login.New(login.Deps{
		Store: o.Credentials, Now: o.Now, Log: o.Log,
		HTTP: func() *http.Client {
			return o.Network.Client(netclient.Options{Connect: connectTime, Guarded: true})
		},
	})
	env := sync.OnceValue(func() []string { return o.Environ(context.Background()) }) // Environ has a time limit
	sv.manager = mcp.New(mcp.Deps{
		Resolve: func(ctx context.Context, name string, s config.MCPServer) (mcp.Launch, error) {
			if err := sv.agreements.checkLaunch(name, s); err != nil {
				return mcp.Launch{}, err
			}
			l, err := sv.launch(ctx, name, s)
			if err == nil && l.URL == "" {
				l.Env = append(slices.Clone(env()), l.Env...)
			}
			return l, err
		},
		Roots:  sv.roots,
		Agreed: sv.agreements.changedTools, Agree: sv.agreements.agreeToTool,
		LastVersion: sv.agreements.lastVersion, SaveVersion: sv.agreements.saveVersion,
		Asker: func() mcp.Asker {
			if c := o.Questions(); c != nil {
				return asker{c}
			}
			return nil
		},
		OpenURL: o.OpenURL,
		Sample:  o.Sample,
		HTTP:    func() *http.Client { return o.Network.Client(netclient.Options{Connect: connectTime}) },
		Changed: o.Changed, Children: o.Children, Version: o.Version, Log: o.Log, Now: o.Now,
	})
	return sv
}

// ApplyServers applies a configuration to the servers, and starts servers that were waiting for a
// login if another process has logged in meanwhile.
func (sv *Servers) ApplyServers(cfg *config.Loaded) {
	sv.manager.Apply(settings(cfg.Config), cfg.MCPServers)
	sv.retryLogins()
}

// EndServerLogins cancels pending logins.
func (sv *Servers) EndServerLogins() { sv.logins.Close() }

// MCP returns the manager that runs the servers.
func (sv *Servers) MCP() *mcp.Manager { return sv.manager }

func (sv *Servers) roots() []string { return sv.opts.Workspace().Roots() }

// connectTime limits how long connecting to a remote server may take.
const connectTime = 10 * time.Second

func settings(cfg *config.Config) mcp.Settings {
	return mcp.Settings{
		Start:     time.Duration(cfg.MCPTimeoutSeconds * float64(time.Second)),
		KeepAlive: time.Duration(cfg.MCPKeepAliveSeconds * float64(time.Second)),
	}
}

// launch expands the configuration of a server for a start.
func (sv *Servers) launch(ctx context.Context, name string, s config.MCPServer) (mcp.Launch, error) {
	if err := config.CheckTransport(s.Command, s.URL); err != nil {
		return mcp.Launch{}, err
	}
	cfg, secrets := sv.opts.Config(), []string{}
	var failed error
	resolve := func(text string, variables bool, path ...string) string {
		path = append([]string{"mcpServers", name}, path...)
		place := config.Place{}
		if origin, ok := cfg.Origin(path[:3]...); ok && filepath.IsAbs(origin.Source) {
			place.Dir = filepath.Dir(origin.Source)
		}
		out, _, err := cfg.Expand(ctx, text, place)
		err = cmp.Or(config.CheckExpressions(path, text), err)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", config.KeyPath(path), err)
		}
		if variables {
			out = sv.withVariables(out)
		}
		if out != text {
			secrets = append(secrets, out)
		}
		return out
	}
	l := mcp.Launch{URL: resolve(s.URL, true, "url"), Headers: map[string]string{}}
	var credentials []string
	for key, value := range s.Headers {
		l.Headers[key] = resolve(value, true, "headers", key)
		texts := []string{l.Headers[key]}
		if words := strings.Fields(l.Headers[key]); len(words) > 1 {
			texts = append(texts, words[len(words)-1]) // Bearer ...
		}
		secrets = append(secrets, texts...)
		if redact.SecretName(key) {
			credentials = append(credentials, texts...)
		}
	}
	if s.Command != "" {
		l.Command = config.UserPath(resolve(s.Command, true, "command"), config.Origin{})
		for _, arg := range s.Args {
			l.Args = append(l.Args, resolve(arg, true, "args"))
		}
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			value := resolve(s.Env[key], false, "env", key)
			l.Env = append(l.Env, key+"="+value)
			if redact.SecretName(key) || config.ReadsSecret(s.Env[key]) {
				credentials = append(credentials, value)
			}
		}
		l.Dir, _ = os.UserHomeDir()
		if roots := sv.roots(); len(roots) > 0 {
			l.Dir = roots[0]
		}
	}
	resolved := s
	resolved.URL = l.URL
	for value, key := range map[*string]string{&resolved.ClientID: "clientId", &resolved.ClientSecret: "clientSecret", &resolved.AuthScope: "authScope"} {
		*value = resolve(*value, true, key)
	}
	credentials = append(credentials, resolved.ClientSecret)
	account := sv.account(name, resolved)
	if account != nil {
		l.Login = account
	}
	sv.setLastAccount(name, account)
	sv.opts.BeforeStart(name, credentials)
	known := redact.Credentials(append(secrets, credentials...)...)
	l.Clean = func(text string) string { return sv.opts.Clean(known.String(text)) }
	if failed == nil && l.URL != "" {
		failed = config.CheckTransport("", l.URL)
	}
	return l, failed
}

// withVariables expands $NAME and ${NAME}, which are allowed for servers in addition to dynamic
// strings (eca-features.md 19). A variable that is not set stays as it is written.
func (sv *Servers) withVariables(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return regexp.MustCompile(`\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)`).ReplaceAllStringFunc(text, func(found string) string {
		if value := sv.opts.Getenv(strings.Trim(found, "${}")); value != "" {
			return value
		}
		return found
	})
}

// StartMCPServers starts the MCP servers, unless they have been started before, and waits until
// each is running or has failed, or until ctx ends.
func (sv *Servers) StartMCPServers(ctx context.Context) {
	sv.manager.Begin()
	sv.manager.Settled(ctx)
}

// StartMCPServer starts a server, even a disabled one. If the start was waiting for the user's consent,
// this call is the consent.
func (sv *Servers) StartMCPServer(name string) {
	sv.agreements.agreeToPending(name)
	sv.manager.Start(name)
}

// TryMCPServer starts a server, even a disabled one, and waits until it is running and has listed
// its tools, or until it has failed; the status has the reason.
func (sv *Servers) TryMCPServer(ctx context.Context, name string) (mcp.Status, error) {
	return sv.manager.Try(ctx, name)
}

// FailureReason returns why a server failed, with its host, the position of its configuration, and
// variables that are not set.
func (sv *Servers) FailureReason(s mcp.Status) string {
	cfg := sv.opts.Config()
	var where []string
	if address, err := url.Parse(cfg.MCPServers[s.Name].URL); err == nil && address.Host != "" {
		where = append(where, address.Scheme+"://"+address.Host) // the rest may contain a secret
	}
	if origin, ok := cfg.Origin("mcpServers", s.Name); ok {
		where = append(where, "configured in "+origin.String())
	}
	for _, path := range cfg.UnsetBelow("mcpServers", s.Name) {
		where = append(where, config.KeyPath(path)+" refers to "+strings.Join(cfg.Unset(path...), ", ")+", which is not set")
	}
	if len(where) == 0 {
		return s.Reason
	}
	return fmt.Sprintf("%s (%s)", s.Reason, strings.Join(where, ", "))
}

// StopMCPServer stops a server.
func (sv *Servers) StopMCPServer(name string) { sv.manager.Stop(name) }

// CloseMCPServers stops all servers permanently.
func (sv *Servers) CloseMCPServers() { sv.manager.Close() }

// MCPStatus returns the state of a server, and its tools with whether an agent may use them.
func (sv *Servers) MCPStatus(name, agent string) (status mcp.Status, offered []tools.Choice) {
	status, ok := sv.manager.Status(name)
	if !ok {
		return mcp.Status{Name: name, State: mcp.Stopped}, nil // its configuration is being applied
	}
	if status.Offer == nil {
		return status, nil
	}
	policy, offered := sv.opts.Policy(), []tools.Choice{}
	for _, t := range status.Offer.Tools {
		shown, says := t.Spec(), t.Described()
		if _, changed := t.Changed(); changed { // the user sees the new description, the model does not yet
			shown.Description, shown.Schema = "(changed, not agreed to) "+says.Description, says.Schema
		}
		offered = append(offered, tools.Choice{Spec: shown, Disabled: policy.HiddenBy(agent, t.Spec()) != ""})
	}
	return status, offered
}
