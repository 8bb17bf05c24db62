package daemon

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/tools"
)

// serverConnect is how long a connection to a remote MCP server may take to stand.
const serverConnect = 10 * time.Second

// newServers returns what runs MCP servers.
func (d *Daemon) newServers() *mcp.Manager {
	env := sync.OnceValue(func() []string { return d.commandEnv(context.Background()) }) // it has a time limit
	return mcp.New(mcp.Deps{
		Resolve: func(ctx context.Context, name string, s config.MCPServer) (mcp.Launch, error) {
			if err := d.agreesToLaunch(name, s); err != nil {
				return mcp.Launch{}, err
			}
			l, err := d.launch(ctx, name, s)
			if err == nil && l.URL == "" {
				l.Env = append(slices.Clone(env()), l.Env...)
			}
			return l, err
		},
		Roots:  d.Roots,
		Agreed: d.agreedTools, Agree: d.agreeToTool,
		Spoken: d.spokenVersion, Spoke: d.keepSpokenVersion,
		Asker: func() mcp.Asker {
			if c := d.client.Load(); c != nil && c.questions != nil {
				return served{c.questions}
			}
			return nil
		},
		OpenURL: d.opts.OpenURL,
		Sample: func(ctx context.Context, chatID, model string, r llm.Request) (mcp.Sampled, error) {
			a, err := d.engine.Aside(ctx, chatID, model, r)
			return mcp.Sampled(a), err
		},
		HTTP: func() *http.Client { return d.network.Client(netclient.Options{Connect: serverConnect}) },
		Changed: func() {
			select {
			case d.served <- struct{}{}:
			default:
			}
		},
		Children: d.children, Version: d.opts.Version, Log: d.opts.Log, Now: d.opts.Now,
	})
}

func serverSettings(cfg *config.Config) mcp.Settings {
	return mcp.Settings{
		Start:     time.Duration(cfg.MCPTimeoutSeconds * float64(time.Second)),
		KeepAlive: time.Duration(cfg.MCPKeepAliveSeconds * float64(time.Second)),
	}
}

// launch resolves what is written of a server, now that it is started.
func (d *Daemon) launch(ctx context.Context, name string, s config.MCPServer) (mcp.Launch, error) {
	if err := config.CheckTransport(s.Command, s.URL); err != nil {
		return mcp.Launch{}, err
	}
	cfg, secrets := d.Config(), []string{}
	var failed error
	resolve := func(text string, variables bool, path ...string) string {
		path = append([]string{"mcpServers", name}, path...)
		place := config.Place{}
		if origin, ok := cfg.Origin(path[:3]...); ok && filepath.IsAbs(origin.Source) {
			place.Dir = filepath.Dir(origin.Source)
		}
		out, _, err := cfg.Expand(ctx, text, place)
		if err != nil && failed == nil {
			failed = fmt.Errorf("%s: %w", config.KeyPath(path), err)
		}
		if variables {
			out = d.withVariables(out)
		}
		if out != text {
			secrets = append(secrets, out)
		}
		return out
	}
	l := mcp.Launch{URL: resolve(s.URL, true, "url"), Headers: map[string]string{}}
	for key, value := range s.Headers {
		l.Headers[key] = resolve(value, true, "headers", key)
		secrets = append(secrets, l.Headers[key])
		if words := strings.Fields(l.Headers[key]); len(words) > 1 {
			secrets = append(secrets, words[len(words)-1]) // Bearer ...
		}
	}
	if s.Command != "" {
		l.Command = userPath(resolve(s.Command, true, "command"), config.Origin{})
		for _, arg := range s.Args {
			l.Args = append(l.Args, resolve(arg, true, "args"))
		}
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			value := resolve(s.Env[key], false, "env", key)
			l.Env = append(l.Env, key+"="+value)
			if redact.SecretName(key) {
				secrets = append(secrets, value)
			}
		}
		l.Dir, _ = os.UserHomeDir()
		if roots := d.workspace.Load().Roots(); len(roots) > 0 {
			l.Dir = roots[0]
		}
	}
	resolved := s
	resolved.URL = l.URL
	for value, key := range map[*string]string{&resolved.ClientID: "clientId", &resolved.ClientSecret: "clientSecret", &resolved.AuthScope: "authScope"} {
		*value = resolve(*value, true, key)
	}
	secrets = append(secrets, resolved.ClientSecret)
	account := d.account(name, resolved)
	if account != nil {
		l.Login = account
	}
	d.launched.Store(name, account)
	known := redact.Known(long(secrets)...)
	l.Clean = func(text string) string { return d.cleanOutput(known.String(text)) }
	if failed == nil && l.URL != "" {
		failed = config.CheckTransport("", l.URL)
	}
	return l, failed
}

// withVariables resolves $NAME and ${NAME}, which servers may have beside the dynamic
// strings (eca-features 19). What is not set stays as it is written.
func (d *Daemon) withVariables(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	return regexp.MustCompile(`\$(\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)`).ReplaceAllStringFunc(text, func(found string) string {
		if value := d.opts.Getenv(strings.Trim(found, "${}")); value != "" {
			return value
		}
		return found
	})
}

// StartMCPServers has the MCP servers started, if that was not done yet, and waits until
// each runs or does not, or ctx ends.
func (d *Daemon) StartMCPServers(ctx context.Context) {
	d.mcp.Begin()
	d.mcp.Settled(ctx)
}

// StartMCPServer starts a server, whatever its configuration says.
//
// It is the user's word for a server whose start waits for that.
func (d *Daemon) StartMCPServer(name string) {
	d.pins.mu.Lock()
	held, ok := d.pins.held[name]
	delete(d.pins.held, name)
	d.pins.mu.Unlock()
	if ok {
		d.agreeToLaunch(name, held.launch)
	}
	d.mcp.Start(name)
}

// TryMCPServer starts a server, also a disabled one, and waits for what comes of that: it
// runs, with all that it has listed, or the status says why not.
func (d *Daemon) TryMCPServer(ctx context.Context, name string) (mcp.Status, error) {
	return d.mcp.Try(ctx, name)
}

// StopMCPServer stops a server.
func (d *Daemon) StopMCPServer(name string) { d.mcp.Stop(name) }

// CloseMCPServers stops all servers for good.
func (d *Daemon) CloseMCPServers() { d.mcp.Close() }

// MCPStatus says how a server is, and which of its tools an agent may use.
func (d *Daemon) MCPStatus(name, agent string) (status mcp.Status, offered []tools.Choice) {
	status, ok := d.mcp.Status(name)
	if !ok {
		return mcp.Status{Name: name, State: mcp.Stopped}, nil // it is just being configured
	}
	if status.Offer == nil {
		return status, nil
	}
	policy, offered := d.policy.Load(), []tools.Choice{}
	for _, t := range status.Offer.Tools {
		shown, says := t.Spec(), t.Described()
		if _, changed := t.Changed(); changed { // the user sees what the model does not yet
			shown.Description, shown.Schema = "(changed, not agreed to) "+says.Description, says.Schema
		}
		offered = append(offered, tools.Choice{Spec: shown, Disabled: policy.Hidden(agent, t.Spec())})
	}
	return status, offered
}

// allTools are our tools and those of the MCP servers at one time.
type allTools struct {
	native  *tools.Registry
	version uint64
	all     *tools.Registry
}

// Tools returns the current tools. A turn asks once, so that it has the same to its end.
func (d *Daemon) Tools() *tools.Registry {
	native, version := (*d.registry.Load())(), d.mcp.Version()
	if a := d.allTools.Load(); a != nil && a.native == native && a.version == version {
		return a.all
	}
	all := native
	if served := d.mcp.Tools(); len(served) > 0 {
		served = d.bounded(served, d.Config().Config)
		all = tools.NewRegistry(append(served, native.All()...)...) // nobody takes the place of ours
	}
	if guard := d.guard.Load(); guard != nil {
		var list []tools.Tool
		for _, t := range all.All() {
			if t, offered := (*guard)(t); offered {
				list = append(list, t)
			}
		}
		all = tools.NewRegistry(list...)
	}
	d.allTools.Store(&allTools{native, version, all})
	return all
}

// Guard has all tools pass through a function before models get them, from now on: it may
// decorate them, or leave them out. A face calls it again when it decides otherwise.
func (d *Daemon) Guard(guard func(tools.Tool) (t tools.Tool, offered bool)) {
	d.guard.Store(&guard)
	d.allTools.Store(nil)
}
