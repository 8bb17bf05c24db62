package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/mcp/login"
)

// newAccounts returns the logins to MCP servers.
func (d *Daemon) newAccounts() *login.Logins {
	return login.New(login.Deps{
		Store: d.servedCreds.Load, Now: d.opts.Now, Log: d.opts.Log,
		HTTP: func() *http.Client {
			return d.network.Client(netclient.Options{Connect: serverConnect, Guarded: true})
		},
	})
}

// account is the login to a server whose strings are resolved; nil if it can have none: it
// is no remote one, or the user gives it a token.
func (d *Daemon) account(name string, s config.MCPServer) *login.Account {
	if s.URL == "" {
		return nil
	}
	for header := range s.Headers {
		if strings.EqualFold(header, "Authorization") {
			return nil
		}
	}
	return d.accounts.Of(accountServer(name, s, d.Roots()))
}

func accountServer(name string, s config.MCPServer, folders []string) login.Server {
	return login.Server{
		Key: login.Key(name, s.AuthScope, folders), URL: s.URL,
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, ClientName: s.ClientName, Port: s.OAuthPort,
	}
}

// launchedAccount is the login to a server as of its last start; ok says whether there was
// one.
func (d *Daemon) launchedAccount(name string) (a *login.Account, ok bool) {
	found, ok := d.launched.Load(name)
	a, _ = found.(*login.Account)
	return a, ok
}

// MCPLogin says whether there is a login to a configured server.
func (d *Daemon) MCPLogin(name string) bool {
	a, ok := d.launchedAccount(name)
	if !ok {
		a = d.account(name, d.Config().MCPServers[name]) // as it is written
	}
	return a != nil && a.Exists()
}

// ConnectMCPServer starts a server, and logs in to it, in the user's browser, if it wants
// that. It does not wait: tell is called with what the user should know, of kind info,
// warning or error. Unknown names are ignored.
func (d *Daemon) ConnectMCPServer(name string, tell func(kind, text string)) {
	if _, ok := d.Config().MCPServers[name]; !ok {
		return
	}
	before := d.servedLogins.find(name)
	d.servedLogins.begin(name, browserTime, nil, func(ctx context.Context) (string, error) {
		if before != nil {
			<-before.done // its port is free then
		}
		err := d.connectServer(ctx, name, tell)
		switch {
		case err != nil && ctx.Err() == nil:
			tell("error", fmt.Sprintf("Login to the MCP server %s: %v", name, err))
		case errors.Is(context.Cause(ctx), errLate):
			tell("warning", fmt.Sprintf("Login to the MCP server %s: %v", name, errLate))
		}
		return "", err
	})
}

// connectServer does the work of ConnectMCPServer.
func (d *Daemon) connectServer(ctx context.Context, name string, tell func(kind, text string)) error {
	status, _ := d.mcp.Status(name)
	if status.State != mcp.NeedsLogin {
		_ = d.mcp.Connect(ctx, name) // its status says why not
		status, _ = d.mcp.Status(name)
	}
	if status.State != mcp.NeedsLogin {
		return nil
	}
	account, _ := d.launchedAccount(name)
	if account == nil {
		return errors.New("it does not take the token in its headers (Authorization); without that, eca could log in")
	}
	err := account.Login(ctx, func(url string) {
		text := fmt.Sprintf("Log in to the MCP server %s in your browser. If it does not open by itself, open %s", name, url)
		if err := d.opts.OpenURL(ctx, url); err != nil {
			d.opts.Log.Info("no browser could be opened", "err", err)
			text = fmt.Sprintf("To log in to the MCP server %s, open %s", name, url)
		}
		tell("info", text)
	})
	if err != nil {
		return err
	}
	tell("info", fmt.Sprintf("You are logged in to the MCP server %s.", name))
	d.mcp.Start(name)
	return nil
}

// LogoutMCPServer forgets the login to a server, and starts the server again if it ran.
// It waits for the former alone. Unknown names are ignored.
func (d *Daemon) LogoutMCPServer(name string) error {
	c, ok := d.Config().MCPServers[name]
	if !ok {
		return nil
	}
	d.servedLogins.cancel(name)
	existed, err := d.forgetLogin(name, c)
	if err != nil {
		return fmt.Errorf("log out of the MCP server %s: %w", name, err)
	}
	switch status, _ := d.mcp.Status(name); status.State {
	case mcp.Starting, mcp.Running, mcp.NeedsLogin, mcp.Failed:
		if existed {
			d.mcp.Restart(name)
		}
	case mcp.Disabled, mcp.Stopped, mcp.Stopping:
	}
	return nil
}

// forgetLogin forgets a login, and has it taken back in the background.
func (d *Daemon) forgetLogin(name string, s config.MCPServer) (existed bool, err error) {
	a, _ := d.launchedAccount(name)
	if a == nil {
		a = d.accounts.Of(accountServer(name, s, d.Roots()))
	}
	existed, revoke, err := a.Forget(d.servedLogins.ctx)
	if revoke != nil {
		d.servedLogins.work.Go(func() { revoke(d.servedLogins.ctx) })
	}
	return existed, err
}

// retryLogins starts the servers again that waited for a login which somebody has done
// meanwhile: another process. One with the login that the server wants more than waits on:
// the notice that it was stored may come late.
func (d *Daemon) retryLogins() {
	for _, status := range d.mcp.Statuses() {
		if status.State != mcp.NeedsLogin || d.servedLogins.find(status.Name) != nil {
			continue
		}
		if a, _ := d.launchedAccount(status.Name); a != nil && a.Hopeful() {
			d.mcp.Start(status.Name)
		}
	}
}

// servedSecrets lists the secrets of logins to MCP servers.
func servedSecrets(entered map[string]auth.Credential) []string {
	var out []string
	for _, c := range entered {
		out = append(out, c.Secrets()...)
	}
	return out
}
