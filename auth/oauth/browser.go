package oauth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/seed-dec29ce4/eca/internal/localhost"
)

// defaultRedirect is the redirect URL if none is configured; its port can be any free one (RFC 8252
// section 7.3).
const defaultRedirect = "http://127.0.0.1/callback"

// BrowserLogin is a login that the user completes in a browser. Close must be called.
type BrowserLogin struct {
	URL string // to open

	// Redirect is where the server sends the browser.
	Redirect string

	// Pasting means that eca cannot receive the redirect, so the user must paste the address at
	// which the browser ended. The user may paste it even if Pasting is false.
	Pasting bool

	client   *Client
	provider Provider
	config   *oauth2.Config
	state    string
	verifier string
	server   *http.Server
	listener net.Listener

	once    sync.Once
	answer  chan callback // only the first one
	serving sync.WaitGroup
}

// callback is the outcome of the redirect.
type callback struct {
	code string
	err  error
}

// StartBrowserLogin starts a login in a browser. If eca cannot receive the redirect, because the port is in
// use or the redirect leads to another host, the user can paste the address.
func (c *Client) StartBrowserLogin(p Provider) (*BrowserLogin, error) {
	if err := p.checkEndpoints(); err != nil {
		return nil, err
	}
	b, err := c.Land(p.RedirectURL)
	if err != nil {
		return nil, err
	}
	if err := b.Begin(p); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// Land prepares a login in a browser without starting it, for callers that must first register the
// redirect at the server. Begin starts it. Port 0 in redirect means any free port.
func (c *Client) Land(redirect string) (*BrowserLogin, error) {
	free := redirect == ""
	if free {
		redirect = defaultRedirect
	}
	u, err := url.Parse(redirect)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("auth.redirectUrl is not a URL")
	}
	b := &BrowserLogin{client: c, state: oauth2.GenerateVerifier(), verifier: oauth2.GenerateVerifier(), answer: make(chan callback, 1)}
	b.listen(u, free)
	b.Redirect = u.String()
	return b, nil
}

// Begin starts a prepared login at a provider. It uses the prepared redirect, not p.RedirectURL.
func (b *BrowserLogin) Begin(p Provider) error {
	if err := p.checkEndpoints(); err != nil {
		return err
	}
	b.provider, b.config = p, p.config(b.Redirect)
	opts := append(p.resource(), oauth2.S256ChallengeOption(b.verifier))
	for k, v := range p.Params {
		opts = append(opts, oauth2.SetAuthURLParam(k, v))
	}
	b.URL = b.config.AuthCodeURL(b.state, opts...)
	if b.server != nil {
		b.serving.Go(func() { _ = b.server.Serve(b.listener) }) // ends with Close
	}
	return nil
}

func (p Provider) checkEndpoints() error {
	for what, at := range map[string]string{"authorization": p.AuthorizeURL, "token": p.TokenURL} {
		if err := p.checkEndpoint(what, at); err != nil {
			return err
		}
	}
	return nil
}

// listen starts a server for the redirect if it leads to this machine. With anyPort, it puts the
// port of the server into redirect.
func (b *BrowserLogin) listen(redirect *url.URL, anyPort bool) {
	b.Pasting = true
	if redirect.Scheme != "http" && redirect.Scheme != "https" || !localhost.Is(redirect.Hostname()) {
		return
	}
	host := redirect.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	port := redirect.Port()
	if port == "" {
		port = redirect.Scheme
		if anyPort {
			port = "0"
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		return
	}
	if redirect.Scheme == "https" {
		cert, err := selfSigned()
		if err != nil {
			_ = l.Close()
			return
		}
		l = tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	}
	b.Pasting, b.listener = false, l
	redirect.Host = net.JoinHostPort(redirect.Hostname(), fmt.Sprint(l.Addr().(*net.TCPAddr).Port)) //nolint:forcetypeassert // of tcp
	path := cmp.Or(redirect.Path, "/")
	b.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // errors of browsers that reject the certificate
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path || r.Method != http.MethodGet {
				http.NotFound(w, r)
				return
			}
			b.receive(w, r.URL.Query())
		}),
	}
}

// selfSigned returns a certificate for one login: some servers require https even for redirects to this
// machine. The browser asks the user to accept it.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// receive handles the redirect. A redirect with a wrong state belongs to another login; it is
// refused, and this login continues.
func (b *BrowserLogin) receive(w http.ResponseWriter, q url.Values) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Referrer-Policy", "no-referrer")
	code, err := b.read(q)
	if errors.Is(err, errState) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "eca is not waiting for this login.\n")
		return
	}
	if err != nil {
		_, _ = io.WriteString(w, "The login failed. You can close this window; eca shows the reason.\n")
	} else {
		_, _ = io.WriteString(w, "eca has received the login. You can close this window.\n")
	}
	b.deliver(callback{code, err})
}

func (b *BrowserLogin) deliver(c callback) { b.once.Do(func() { b.answer <- c }) }

// errState means that an answer belongs to another login.
var errState = errors.New("this belongs to another login; open the newest link, and paste the address at which it ends")

func (b *BrowserLogin) read(q url.Values) (code string, err error) {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(b.state)) != 1 {
		return "", errState
	}
	// RFC 9207: an answer of another server must not be sent to this one. The issuers must be
	// identical strings.
	issuer, hasIssuer := q.Get("iss"), q.Has("iss")
	if b.provider.ResponseIssuer != "" && (hasIssuer && issuer != b.provider.ResponseIssuer || !hasIssuer && b.provider.SendsIssuer) {
		return "", errors.New("the answer comes from a different login server; the login was stopped")
	}
	if e := q.Get("error"); e != "" {
		return "", &Error{Code: oneLine(e, 100), Description: oneLine(q.Get("error_description"), 300)}
	}
	if code = q.Get("code"); code == "" {
		return "", errors.New("the login server sent no code")
	}
	return code, nil
}

// Paste completes the login with text that the user copied from the browser: the address of the
// redirect, the code#state that a page shows, or the code alone, which PKCE binds to this login.
// After Paste, Wait returns.
func (b *BrowserLogin) Paste(text string) error {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > 16<<10 || strings.ContainsAny(text, " \t\r\n") {
		return errors.New("paste the address that the browser was sent to, or the code that the page shows")
	}
	code := text
	if strings.Contains(text, "://") {
		u, err := url.Parse(text)
		if err != nil {
			return errors.New("the pasted text is not an address")
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

// Wait waits for the redirect or for Paste, and returns the tokens.
func (b *BrowserLogin) Wait(ctx context.Context) (Tokens, error) {
	select {
	case <-ctx.Done():
		return Tokens{}, ctx.Err()
	case got := <-b.answer:
		if got.err != nil {
			return Tokens{}, got.err
		}
		t, err := b.config.Exchange(b.client.context(ctx), got.code, append(b.provider.resource(), oauth2.VerifierOption(b.verifier))...)
		if err != nil {
			return Tokens{}, sanitizeError(err, got.code, b.verifier, b.provider.ClientSecret)
		}
		return b.client.tokens(t), nil
	}
}

// Close stops the server. It waits for a running response.
func (b *BrowserLogin) Close() {
	if b.server == nil {
		return
	}
	_ = b.listener.Close() // needed if Begin was not called
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close()
	}
	b.serving.Wait()
}
