package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/login"
)

// loginBrowser starts a browser login.
func (l *Logins) loginBrowser(ctx context.Context, name string, p config.Provider) (auth.Step, error) {
	client, server, err := l.authServer(ctx, name, p)
	if err != nil {
		return auth.Step{}, err
	}
	if server.AuthorizeURL == "" {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("the login server of provider %s offers no login by browser; use the method %s", l.config().Spelled(name), methodDevice)}
	}
	b, err := client.StartBrowserLogin(server)
	if err != nil {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", l.config().Spelled(name), err)}
	}
	a := l.attempts.Begin(name, login.BrowserTime, b.Paste, func(ctx context.Context) (string, error) {
		defer b.Close()
		t, err := b.Wait(ctx)
		if err != nil {
			return "", err
		}
		return l.storeLogin(ctx, name, p, server, methodBrowser, t)
	})
	message := "Open the link and log in. If the browser is on another machine, or ends at a page that cannot be shown, paste the address of that page here."
	if b.Pasting {
		message = "Open the link and log in. Then paste the address that the browser was sent to, or the code that is shown."
	}
	return auth.Step{
		Action: auth.ActionAuthorize, URL: b.URL, Message: message, Wait: a.Wait,
		Fields: []auth.Field{{Key: fieldCode, Label: "Address or code", Secret: true}},
	}, nil
}

// loginDevice starts a login by device code.
func (l *Logins) loginDevice(ctx context.Context, name string, p config.Provider) (auth.Step, error) {
	client, server, err := l.authServer(ctx, name, p)
	if err != nil {
		return auth.Step{}, err
	}
	if server.DeviceURL == "" {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("the login server of provider %s offers no login by code; use the method %s", l.config().Spelled(name), methodBrowser)}
	}
	device, err := client.StartDeviceLogin(ctx, server)
	if err != nil {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", l.config().Spelled(name), err)}
	}
	a := l.attempts.Begin(name, device.Expires.Sub(l.models.opts.Now())+time.Minute, nil, func(ctx context.Context) (string, error) {
		t, err := device.Wait(ctx)
		if err != nil {
			return "", err
		}
		return l.storeLogin(ctx, name, p, server, methodDevice, t)
	})
	return auth.Step{
		Action: auth.ActionDeviceCode, URL: device.URL, Code: device.Code, Wait: a.Wait,
		Message: "Open the link on any device and enter the code.",
	}, nil
}

// authServer returns the authorization server of a provider, with its endpoints.
func (l *Logins) authServer(ctx context.Context, name string, p config.Provider) (*oauth.Client, oauth.Provider, error) {
	client := logins{l.models.view()}.oauthClient(name, p)
	server, err := client.Discover(ctx, authServer(name, p))
	if err != nil && ctx.Err() == nil {
		err = &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", l.config().Spelled(name), err)}
	}
	return client, server, err
}

// storeLogin stores the tokens of a login.
func (l *Logins) storeLogin(ctx context.Context, name string, p config.Provider, s oauth.Provider, method string, t oauth.Tokens) (notice string, err error) {
	if !headerSafe(t.Access) {
		return "", errors.New("the login server returned a token that cannot be sent")
	}
	c := auth.NewLogin(t.Access, t.Refresh, t.Expires)
	c.Method = method
	c.For = binding(s, p.URL)
	if name == copilot {
		if err := (logins{l.models.view()}).copilotFacts(ctx, p, &c); err != nil {
			return "", err
		}
	}
	if err := l.models.opts.Credentials().Set(ctx, name, c); err != nil {
		return "", err
	}
	l.reload()
	return l.keyNotice(name, "The login for provider %s is stored, but not used: %s has a key that wins. Remove it there to use the login."), nil
}

// alternativeTo returns the alternative to a login method of the reference server that eca does not
// have, because it needs the identity of another program. It returns "" for other methods.
func alternativeTo(name, method string) string {
	const how = "That login is only for the vendor's own programs, and eca does not pretend to be one. "
	switch {
	case name == "openai" && (method == "pro" || method == "chatgpt"):
		return "eca does not log in with a ChatGPT subscription. " + how + "What works: an API key of platform.openai.com, or a subscription's models over another provider that gives you a key."
	case name == "anthropic" && (method == "max" || method == "console"):
		return "eca does not log in with a Claude subscription or at Anthropic's console. " + how + "What works: an API key of console.anthropic.com, or Claude over Amazon Bedrock, OpenRouter and others."
	case name == copilot:
		return "eca has no application of its own at GitHub, and does not use another program's. Instead, register an OAuth app with device flow at GitHub that your Copilot plan admits, and set " +
			"providers.github-copilot.auth.clientId to its client id. Many of Copilot's models are also offered by their makers, for a key."
	}
	return ""
}

// hint returns advice, in Markdown, for a user who wants to log in to a provider.
func hint(name string) string {
	switch name {
	case "openai":
		return alternativeTo(name, "pro")
	case "anthropic":
		return alternativeTo(name, "max")
	}
	return ""
}

// oneOf lists methods for users.
func oneOf(list []auth.Method) string {
	var keys []string
	for _, m := range list {
		keys = append(keys, m.Key)
	}
	return cmp.Or(strings.Join(keys, ", "), "none")
}
