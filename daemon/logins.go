package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/config"
)

// browserTime is how long a login in a browser is waited for.
const browserTime = 15 * time.Minute

// logins are those that wait for the user: at most one per provider, a newer one in
// place of an older.
type logins struct {
	ctx  context.Context // ends with the daemon
	stop context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex // guards what follows
	open map[string]*attempt
}

// attempt is a login that waits.
type attempt struct {
	cancel context.CancelCauseFunc
	paste  func(text string) error // nil: there is nothing to paste
	done   chan struct{}           // closed when the rest is set
	notice string
	err    error

	mu       sync.Mutex // guards answered
	answered bool       // the user has pasted: who took that is told the outcome
}

// Why a login ended before the user finished it.
var (
	errNewer  = errors.New("another login was begun in its place")
	errLogout = errors.New("the login was cancelled")
	errLate   = errors.New("nobody finished the login in time; log in again")
)

func newLogins() *logins {
	l := &logins{open: map[string]*attempt{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

func (l *logins) close() {
	l.stop()
	l.work.Wait()
}

// begin waits in the background for a login to end; finish is called with its outcome.
func (l *logins) begin(provider string, limit time.Duration, paste func(string) error, wait func(context.Context) (notice string, err error)) *attempt {
	ctx, cancel := context.WithCancelCause(l.ctx)
	a := &attempt{cancel: cancel, paste: paste, done: make(chan struct{})}
	l.mu.Lock()
	old := l.open[provider]
	l.open[provider] = a
	l.mu.Unlock()
	if old != nil {
		old.cancel(errNewer)
	}
	l.work.Go(func() {
		defer close(a.done)
		defer cancel(nil)
		ctx, stop := context.WithTimeoutCause(ctx, limit, errLate)
		defer stop()
		a.notice, a.err = wait(ctx)
		if ctx.Err() != nil && a.err != nil {
			a.err = context.Cause(ctx)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[provider] == a {
			delete(l.open, provider)
		}
	})
	return a
}

func (l *logins) find(provider string) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[provider]
}

// cancel ends a provider's login that waits.
func (l *logins) cancel(provider string) {
	if a := l.find(provider); a != nil {
		a.cancel(errLogout)
	}
}

// wait returns the outcome to who began the login; ErrAnswered if the user pasted.
func (a *attempt) wait(ctx context.Context) (notice string, err error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return "", auth.ErrAnswered
	}
	return a.notice, a.err
}

// answer takes what the user pasted, and returns the outcome.
func (a *attempt) answer(ctx context.Context, text string) (notice string, err error) {
	a.mu.Lock()
	a.answered = true
	err = a.paste(text)
	if err != nil {
		a.answered = false
	}
	a.mu.Unlock()
	if err != nil {
		return "", &auth.InvalidError{Reason: err.Error()}
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	var refused *oauth.Error
	if errors.As(a.err, &refused) {
		return "", &auth.InvalidError{Reason: a.err.Error()}
	}
	return a.notice, a.err
}

// loginBrowser begins a login in a browser.
func (d *Daemon) loginBrowser(ctx context.Context, name string, p config.Provider) (auth.Step, error) {
	client, server, err := d.authServer(ctx, name, p)
	if err != nil {
		return auth.Step{}, err
	}
	if server.AuthorizeURL == "" {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("the login server of provider %s offers no login by browser; use the method %s", d.Config().Spelled(name), methodDevice)}
	}
	b, err := client.Browser(server)
	if err != nil {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", d.Config().Spelled(name), err)}
	}
	a := d.logins.begin(name, browserTime, b.Paste, func(ctx context.Context) (string, error) {
		defer b.Close()
		t, err := b.Wait(ctx)
		if err != nil {
			return "", err
		}
		return d.loggedIn(ctx, name, p, server, methodBrowser, t)
	})
	message := "Open the link and log in. If the browser is on another machine, or ends at a page that can not be shown, paste the address of that page here."
	if b.Pasting {
		message = "Open the link and log in. Then paste the address that the browser was sent to, or the code that is shown."
	}
	return auth.Step{
		Action: auth.ActionAuthorize, URL: b.URL, Message: message, Wait: a.wait,
		Fields: []auth.Field{{Key: fieldCode, Label: "Address or code", Secret: true}},
	}, nil
}

// loginDevice begins a login by device code.
func (d *Daemon) loginDevice(ctx context.Context, name string, p config.Provider) (auth.Step, error) {
	client, server, err := d.authServer(ctx, name, p)
	if err != nil {
		return auth.Step{}, err
	}
	if server.DeviceURL == "" {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("the login server of provider %s offers no login by code; use the method %s", d.Config().Spelled(name), methodBrowser)}
	}
	device, err := client.Device(ctx, server)
	if err != nil {
		return auth.Step{}, &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", d.Config().Spelled(name), err)}
	}
	a := d.logins.begin(name, device.Expires.Sub(d.opts.Now())+time.Minute, nil, func(ctx context.Context) (string, error) {
		t, err := device.Wait(ctx)
		if err != nil {
			return "", err
		}
		return d.loggedIn(ctx, name, p, server, methodDevice, t)
	})
	return auth.Step{
		Action: auth.ActionDeviceCode, URL: device.URL, Code: device.Code, Wait: a.wait,
		Message: "Open the link on any device and enter the code.",
	}, nil
}

// authServer returns who logs users in to a provider, with its endpoints.
func (d *Daemon) authServer(ctx context.Context, name string, p config.Provider) (*oauth.Client, oauth.Provider, error) {
	client := d.models.oauthClient(name, p)
	server, err := client.Discover(ctx, authServer(name, p))
	if err != nil && ctx.Err() == nil {
		err = &auth.InvalidError{Reason: fmt.Sprintf("provider %s: %v", d.Config().Spelled(name), err)}
	}
	return client, server, err
}

// loggedIn stores what a login gave.
func (d *Daemon) loggedIn(ctx context.Context, name string, p config.Provider, s oauth.Provider, method string, t oauth.Tokens) (notice string, err error) {
	if !headerSafe(t.Access) {
		return "", errors.New("the login server gave a token that can not be sent")
	}
	c := credentialOf(t)
	c.Method = method
	c.For = binding(s, p.URL)
	if name == copilot {
		if err := d.models.copilotFacts(ctx, p, &c); err != nil {
			return "", err
		}
	}
	if err := d.creds.Load().Set(ctx, name, c); err != nil {
		return "", err
	}
	d.reload()
	return d.keyNotice(name, "The login for provider %s is stored, but not used: %s has a key that wins. Remove it there to use the login."), nil
}

// notOffered says what became of logins of the reference server that eca does not have:
// they need the identity of another program. Empty for others.
func notOffered(name, method string) string {
	const how = "That login is only for the vendor's own programs, and eca does not pretend to be one. "
	switch {
	case name == "openai" && (method == "pro" || method == "chatgpt"):
		return "eca does not log in with a ChatGPT subscription. " + how + "What works: an API key of platform.openai.com, or a subscription's models over another provider that gives you a key."
	case name == "anthropic" && (method == "max" || method == "console"):
		return "eca does not log in with a Claude subscription or at Anthropic's console. " + how + "What works: an API key of console.anthropic.com, or Claude over Amazon Bedrock, OpenRouter and others."
	case name == copilot:
		return "eca has no application of its own at GitHub, and does not use another program's. What works: register an OAuth app with device flow at GitHub that your Copilot plan admits, and set " +
			"providers.github-copilot.auth.clientId to its client id. Many of Copilot's models are also offered by their makers, for a key."
	}
	return ""
}

// Hints says in Markdown what a user who wants to log in to a provider should know first.
func hint(name string) string {
	switch name {
	case "openai":
		return notOffered(name, "pro")
	case "anthropic":
		return notOffered(name, "max")
	}
	return ""
}

// oneOf names methods for users.
func oneOf(list []auth.Method) string {
	var keys []string
	for _, m := range list {
		keys = append(keys, m.Key)
	}
	return cmp.Or(strings.Join(keys, ", "), "none")
}
