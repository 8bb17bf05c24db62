package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// defaultRedirect is where browsers are sent to (RFC 8252 section 7.3): any free port.
const defaultRedirect = "http://127.0.0.1/callback"

// Browser is a login that the user finishes in a browser. Close must be called.
type Browser struct {
	URL string // to open

	// Pasting says that nothing on this machine hears of the end, so that what the
	// browser was sent to must be pasted. It is never wrong to paste.
	Pasting bool

	client   *Client
	provider Provider
	config   *oauth2.Config
	state    string
	verifier string
	server   *http.Server

	once   sync.Once
	answer chan callback // the first one only
	served sync.WaitGroup
}

// callback is what the browser was sent back with.
type callback struct {
	code string
	err  error
}

// Browser begins a login in a browser. If no redirect can be received (the port is taken,
// or the redirect leads elsewhere), the user can still paste.
func (c *Client) Browser(p Provider) (*Browser, error) {
	for what, at := range map[string]string{"authorization": p.AuthorizeURL, "token": p.TokenURL} {
		if err := p.check(what, at); err != nil {
			return nil, err
		}
	}
	redirect := p.RedirectURL
	if redirect == "" {
		redirect = defaultRedirect
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("auth.redirectUrl is not a URL")
	}
	b := &Browser{
		client: c, provider: p, state: oauth2.GenerateVerifier(), verifier: oauth2.GenerateVerifier(),
		answer: make(chan callback, 1),
	}
	b.listen(u, p.RedirectURL == "")
	b.config = p.config(u.String())
	opts := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(b.verifier)}
	for k, v := range p.Params {
		opts = append(opts, oauth2.SetAuthURLParam(k, v))
	}
	b.URL = b.config.AuthCodeURL(b.state, opts...)
	return b, nil
}

// listen waits for the redirect where it leads to, if that is this machine. anyPort puts
// the port that was found into it.
func (b *Browser) listen(redirect *url.URL, anyPort bool) {
	b.Pasting = true
	if redirect.Scheme != "http" || !loopback(redirect.Hostname()) {
		return
	}
	host := redirect.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	port := redirect.Port()
	if port == "" {
		port = "80"
		if anyPort {
			port = "0"
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return
	}
	b.Pasting = false
	redirect.Host = net.JoinHostPort(redirect.Hostname(), fmt.Sprint(l.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // of tcp
	path := redirect.Path
	if path == "" {
		path = "/"
	}
	b.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path || r.Method != http.MethodGet {
				http.NotFound(w, r)
				return
			}
			b.receive(w, r.URL.Query())
		}),
	}
	b.served.Go(func() { _ = b.server.Serve(l) }) // ends with Close
}

// receive takes the redirect. One with another state is somebody else's: it is refused,
// and the login goes on.
func (b *Browser) receive(w http.ResponseWriter, q url.Values) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	code, err := b.read(q)
	if errors.Is(err, errState) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This is not the login that eca waits for.\n")
		return
	}
	if err != nil {
		_, _ = io.WriteString(w, "The login failed. You can close this window; eca says more.\n")
	} else {
		_, _ = io.WriteString(w, "eca has received the login. You can close this window.\n")
	}
	b.deliver(callback{code, err})
}

func (b *Browser) deliver(c callback) { b.once.Do(func() { b.answer <- c }) }

// errState says that an answer belongs to another login.
var errState = errors.New("this belongs to another login; open the newest link, and paste what it leads to")

func (b *Browser) read(q url.Values) (code string, err error) {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		return "", errState
	}
	if e := q.Get("error"); e != "" {
		return "", &Error{Code: oneLine(e, 100), Description: oneLine(q.Get("error_description"), 300)}
	}
	if code = q.Get("code"); code == "" {
		return "", errors.New("the login server sent no code")
	}
	return code, nil
}

// Paste takes what the user copied from the browser: the address it was sent to, what
// the page shows as code#state, or the code alone, which PKCE binds to this login. After
// it, Wait returns.
func (b *Browser) Paste(text string) error {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 16<<10 || strings.ContainsAny(text, " \t\r\n") {
		return errors.New("paste the address that the browser was sent to, or the code that the page shows")
	}
	code := text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return errors.New("what you pasted is not an address")
		}
		if code, err = b.read(u.Query()); err != nil {
			return err
		}
	} else if before, state, ok := strings.Cut(text, "#"); ok {
		if subtle.ConstantTimeCompare([]byte(state), []byte(b.state)) != 1 {
			return errState
		}
		code = before
	}
	b.deliver(callback{code: code})
	return nil
}

// Wait returns the tokens once the user is back, by redirect or by Paste.
func (b *Browser) Wait(ctx context.Context) (Tokens, error) {
	select {
	case <-ctx.Done():
		return Tokens{}, ctx.Err()
	case got := <-b.answer:
		if got.err != nil {
			return Tokens{}, got.err
		}
		t, err := b.config.Exchange(b.client.context(ctx), got.code, oauth2.VerifierOption(b.verifier))
		if err != nil {
			return Tokens{}, clean(err, got.code, b.verifier, b.provider.ClientSecret)
		}
		return b.client.tokens(t), nil
	}
}

// Close stops listening. An answer that is being written is finished.
func (b *Browser) Close() {
	if b.server == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close()
	}
	b.served.Wait()
}
