package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	pending "github.com/seed-dec29ce4/eca/daemon/login"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/mcp/login"
)

// account returns the login account for a server whose strings are resolved. It returns nil if the
// server cannot have one: it is not remote, or the user configured a token.
func (sv *Servers) account(name string, s config.MCPServer) *login.Account {
	if s.URL == "" {
		return nil
	}
	for header := range s.Headers {
		if strings.EqualFold(header, "Authorization") {
			return nil
		}
	}
	return sv.accounts.Of(accountServer(name, s, sv.roots()))
}

func accountServer(name string, s config.MCPServer, folders []string) login.Server {
	return login.Server{
		Key: login.Key(name, s.AuthScope, folders), URL: s.URL,
		ClientID: s.ClientID, ClientSecret: s.ClientSecret, ClientName: s.ClientName, Port: s.OAuthPort,
	}
}

// lastAccount returns the login account that a server's last start used; ok is false if the
// server has not been started.
func (sv *Servers) lastAccount(name string) (a *login.Account, ok bool) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	a, ok = sv.lastAccounts[name]
	return a, ok
}

func (sv *Servers) setLastAccount(name string, a *login.Account) {
	sv.mu.Lock()
	defer sv.mu.Unlock()
	sv.lastAccounts[name] = a
}

// MCPLogin reports whether there is a login to a configured server.
func (sv *Servers) MCPLogin(name string) bool {
	a, ok := sv.lastAccount(name)
	if !ok {
		a = sv.account(name, sv.opts.Config().MCPServers[name]) // with unresolved strings
	}
	return a != nil && a.Exists()
}

// ConnectMCPServer starts a server, and logs in to it in the user's browser if the server requires
// that. It does not wait: it calls notify with messages for the user, of kind info, warning or error.
// Unknown names are ignored.
func (sv *Servers) ConnectMCPServer(name string, notify func(kind, text string)) {
	if _, ok := sv.opts.Config().MCPServers[name]; !ok {
		return
	}
	previous := sv.logins.Find(name)
	sv.logins.Begin(name, pending.BrowserTime, nil, func(ctx context.Context) (string, error) {
		if previous != nil {
			<-previous.Done() // then its port is free
		}
		loggedIn, err := sv.login(ctx, name, notify)
		switch {
		case loggedIn:
			notify("info", fmt.Sprintf("You are logged in to the MCP server %s.", name))
			sv.manager.Start(name)
		case err != nil && ctx.Err() == nil:
			notify("error", fmt.Sprintf("Login to the MCP server %s: %v", name, err))
		case errors.Is(context.Cause(ctx), pending.ErrLate):
			notify("warning", fmt.Sprintf("Login to the MCP server %s: %v", name, pending.ErrLate))
		}
		return "", err
	})
}

// LoginMCPServer is like ConnectMCPServer, but waits until the server has started with the login,
// until one of the two has failed, or until ctx ends. status is the server's state then; loggedIn
// is false if the server did not require a login.
func (sv *Servers) LoginMCPServer(ctx context.Context, name string, notify func(kind, text string)) (status mcp.Status, loggedIn bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pending.BrowserTime, pending.ErrLate)
	defer cancel()
	loggedIn, err = sv.login(ctx, name, notify)
	if loggedIn {
		_ = sv.manager.Connect(ctx, name) // its status says why not
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	status, _ = sv.manager.Status(name)
	return status, loggedIn, err
}

// login starts a server unless it is already waiting for a login, and logs in to it if the server
// requires that.
func (sv *Servers) login(ctx context.Context, name string, notify func(kind, text string)) (loggedIn bool, err error) {
	status, _ := sv.manager.Status(name)
	if status.State != mcp.NeedsLogin {
		_ = sv.manager.Connect(ctx, name) // its status says why not
		status, _ = sv.manager.Status(name)
	}
	if status.State != mcp.NeedsLogin {
		return false, nil
	}
	account, _ := sv.lastAccount(name)
	if account == nil {
		return false, errors.New("it does not accept the token in its headers (Authorization); remove the token, so that eca can log in")
	}
	err = account.Login(ctx, func(url string) {
		text := fmt.Sprintf("Log in to the MCP server %s in your browser. If it does not open, go to %s", name, url)
		if err := sv.opts.OpenURL(ctx, url); err != nil {
			sv.opts.Log.Info("cannot open a browser", "err", err)
			text = fmt.Sprintf("To log in to the MCP server %s, open %s", name, url)
		}
		notify("info", text)
	})
	return err == nil, err
}

// LogoutMCPServer deletes the login to a server, and restarts the server if it was running. It does
// not wait for the restart. Unknown names are ignored.
func (sv *Servers) LogoutMCPServer(name string) error {
	c, ok := sv.opts.Config().MCPServers[name]
	if !ok {
		return nil
	}
	sv.logins.Cancel(name)
	existed, err := sv.forgetLogin(name, c)
	if err != nil {
		return fmt.Errorf("log out of the MCP server %s: %w", name, err)
	}
	switch status, _ := sv.manager.Status(name); status.State {
	case mcp.Starting, mcp.Running, mcp.NeedsLogin, mcp.Failed:
		if existed {
			sv.manager.Restart(name)
		}
	case mcp.Disabled, mcp.Stopped, mcp.Stopping:
	}
	return nil
}

// forgetLogin deletes a login, and revokes it in the background.
func (sv *Servers) forgetLogin(name string, s config.MCPServer) (existed bool, err error) {
	a, _ := sv.lastAccount(name)
	if a == nil {
		a = sv.accounts.Of(accountServer(name, s, sv.roots()))
	}
	existed, revoke, err := a.Forget(sv.logins.Context())
	if revoke != nil {
		sv.logins.Go(revoke)
	}
	return existed, err
}

// retryLogins starts servers that were waiting for a login if another process has logged in
// meanwhile. A server that has refused the stored login for lack of permission keeps waiting.
func (sv *Servers) retryLogins() {
	for _, status := range sv.manager.Statuses() {
		if status.State != mcp.NeedsLogin || sv.logins.Find(status.Name) != nil {
			continue
		}
		if a, _ := sv.lastAccount(status.Name); a != nil && a.Usable() {
			sv.manager.Start(status.Name)
		}
	}
}
