package netclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Kind is the kind of an Error.
type Kind string

// Kinds of errors.
const (
	KindDNS               Kind = "dns"                // a name was not found or could not be looked up
	KindConnect           Kind = "connect"            // no server answers at the address
	KindTimeout           Kind = "timeout"            // no connection within Options.Connect
	KindProxy             Kind = "proxy"              // the proxy cannot be used, or refuses the connection
	KindProxyAuth         Kind = "proxy_auth"         // the proxy wants other credentials
	KindCertificate       Kind = "certificate"        // the server's certificate is not trusted
	KindClientCertificate Kind = "client_certificate" // the server does not trust the client certificate, or it is missing
	KindTLS               Kind = "tls"                // another TLS error
	KindForbidden         Kind = "forbidden"          // the request's Guard rejected the address
	KindLost              Kind = "lost"               // the connection broke, or another error
)

// Error is the error of a request without an answer. Message can be shown to the user: it names the
// cause and the host, and contains no part of a URL except scheme, host and port.
type Error struct {
	Kind    Kind
	Message string
	Cause   error // may contain details that should not be shown
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Cause }

// Permanent reports whether the request will fail again until the configuration of eca or of the
// server changes.
func (e *Error) Permanent() bool {
	switch e.Kind {
	case KindProxyAuth, KindCertificate, KindClientCertificate, KindTLS, KindForbidden:
		return true
	case KindProxy:
		return e.Cause == nil || serverAbsent(e.Cause) // without a cause, the proxy refuses, or its variable is invalid
	case KindDNS, KindConnect:
		return serverAbsent(e.Cause)
	}
	return false
}

// serverAbsent reports whether a connection failed because its host does not exist, or because nothing
// listens on a port of this machine. Waiting does not change that.
func serverAbsent(err error) bool {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		return dns.IsNotFound
	}
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || !errors.Is(op.Err, syscall.ECONNREFUSED) {
		return false
	}
	to, ok := op.Addr.(*net.TCPAddr)
	return ok && to.IP.IsLoopback()
}

// Explain describes the error of a failed request, also of clients from other packages. host is the
// host of the request; it may be empty.
func Explain(err error, host string) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return classify(err, host)
}

// explain is Explain for a request whose URL and route are known. cancelCause is why the request was
// cancelled; nil if it was not.
func explain(err, cancelCause error, at *url.URL, r *route) *Error {
	var known *Error
	if errors.As(cancelCause, &known) || errors.As(err, &known) {
		return known
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "proxyconnect" || op.Op == "socks connect") && r.proxy != nil {
		return explainProxyError(op, at, r.proxy)
	}
	out := classify(err, address(at))
	if at.Scheme == "http" && out.Kind == KindLost && strings.HasSuffix(out.Message, closedConnection) {
		out.Message += PerhapsTLS
	}
	if r.certificateRequested.Load() && (out.Kind == KindTLS || out.Kind == KindLost || out.Kind == KindClientCertificate) {
		out.Kind = KindClientCertificate
		out.Message = address(at) + " requires a client certificate: set network.clientCert and network.clientKey"
	}
	return out
}

// explainProxyError explains an error that occurred before the proxy connected to a server.
func explainProxyError(op *net.OpError, at, proxy *url.URL) *Error {
	if op.Op == "proxyconnect" {
		out := classify(op.Err, address(proxy))
		out.Message = "the proxy " + displayURL(proxy) + " cannot be used: " + out.Message
		if out.Kind != KindCertificate && out.Kind != KindClientCertificate && out.Kind != KindTLS {
			out.Kind = KindProxy
		}
		return out
	}
	text := "unknown reason"
	if op.Err != nil {
		text = op.Err.Error()
	}
	if strings.Contains(text, "authentication") || strings.Contains(text, "username/password") {
		return proxyAuth(proxy)
	}
	return &Error{Kind: KindProxy, Cause: op, Message: fmt.Sprintf("the proxy %s does not connect to %s: %s", displayURL(proxy), address(at), text)}
}

func proxyAuth(proxy *url.URL) *Error {
	e := &Error{Kind: KindProxyAuth, Message: "the proxy " + displayURL(proxy) + " requires a user and a password: put them into its URL in the environment (http://user:password@host:port)"}
	if proxy.User != nil {
		e.Message = "the proxy " + displayURL(proxy) + " does not accept the user and the password in its URL in the environment"
	}
	return e
}

// proxyRefusal explains why a proxy does not connect; nil if it connects. connect is nil for a request
// without a tunnel.
func proxyRefusal(_ context.Context, proxy *url.URL, connect *http.Request, answer *http.Response) error {
	switch {
	case answer.StatusCode == http.StatusProxyAuthRequired:
		return proxyAuth(proxy)
	case connect == nil || answer.StatusCode == http.StatusOK:
		return nil
	}
	e := &Error{Kind: KindProxy, Message: fmt.Sprintf("the proxy %s does not connect to %s: it answers %d %s", displayURL(proxy), connect.Host, answer.StatusCode, http.StatusText(answer.StatusCode))}
	if answer.StatusCode >= 500 {
		e.Cause = errors.New("the proxy failed") // a temporary error
	}
	return e
}

// connectTimeout returns the error for a connection that was not made within Options.Connect.
func connectTimeout(at, proxy *url.URL, limit time.Duration) *Error {
	to := address(at)
	if proxy != nil {
		to += " through the proxy " + displayURL(proxy)
	}
	return &Error{Kind: KindTimeout, Message: fmt.Sprintf("no connection to %s within %s", to, limit), Cause: context.DeadlineExceeded}
}

// classify explains a network or TLS error.
func classify(err error, host string) *Error {
	out := &Error{Kind: KindLost, Cause: err}
	var dns *net.DNSError
	var op *net.OpError
	switch problem := certificateProblem(err, host); {
	case problem != "":
		out.Kind, out.Message = KindCertificate, problem
	case errors.As(err, &dns):
		out.Kind, out.Message = KindDNS, fmt.Sprintf("host %q was not found", dns.Name)
		if !dns.IsNotFound {
			out.Message = fmt.Sprintf("host %q could not be looked up: %s", dns.Name, dns.Err)
		}
	case errors.As(err, &op) && op.Op == "dial":
		out.Kind = KindConnect
		if op.Timeout() {
			out.Kind = KindTimeout
		}
		to := host
		if op.Addr != nil {
			to = op.Addr.String()
		}
		out.Message = fmt.Sprintf("no connection to %s: %v", to, op.Err)
		switch {
		case errors.Is(op.Err, syscall.ECONNREFUSED):
			out.Message = "connection refused by " + to
		case op.Timeout():
			out.Message = "no connection to " + to + ": it does not answer"
		}
	case errors.As(err, &op) && op.Op == "remote error":
		out.Kind, out.Message = KindTLS, hostName(host)+" aborted TLS: "+strings.TrimPrefix(op.Err.Error(), "tls: ")
		if strings.Contains(op.Err.Error(), "internal error") {
			out.Kind = KindLost // may be temporary
		}
		for _, sign := range []string{"certificate", "access denied"} {
			if strings.Contains(op.Err.Error(), sign) {
				out.Kind, out.Message = KindClientCertificate, hostName(host)+" does not accept our client certificate (network.clientCert): "+strings.TrimPrefix(op.Err.Error(), "tls: ")
			}
		}
	case errors.As(err, new(tls.RecordHeaderError)):
		out.Kind, out.Message = KindTLS, hostName(host)+" does not use TLS on this port; the url may need http:// or another port"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		out.Message = hostName(host) + closedConnection
	case errors.Is(err, context.DeadlineExceeded):
		out.Message = hostName(host) + " did not answer in time"
	default:
		out.Message = "the connection failed: " + withoutURL(err).Error()
	}
	return out
}

// closedConnection ends the message of a connection that ended early.
const closedConnection = " closed the connection"

// PerhapsTLS follows the message of a connection over http that ended without an answer: many servers
// end it when they expect TLS.
const PerhapsTLS = "; if it uses TLS, the url needs https://"

// certificateProblem explains why a server's certificate is not trusted; empty for other errors.
func certificateProblem(err error, host string) string {
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		by := "an authority"
		if unknown.Cert != nil && unknown.Cert.Issuer.CommonName != "" {
			by = fmt.Sprintf("%.80q", unknown.Cert.Issuer.CommonName)
		}
		return fmt.Sprintf("the certificate of %s is signed by %s, which is not trusted here; if it is your organisation's, save its certificate in a file and set network.caCertFile", hostName(host), by)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Sprintf("the certificate of %s is not valid now: only from %s until %s; or this machine's clock is wrong", hostName(host), day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))
	case errors.As(err, &name):
		names := append([]string{}, name.Certificate.DNSNames...)
		for _, ip := range name.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		if len(names) == 0 { // Go does not read the common name
			return fmt.Sprintf("the certificate of %s names no host; create one whose subjectAltName has the host", hostName(host))
		}
		return fmt.Sprintf("the certificate of %s is for %.200s", hostName(host), strings.Join(names, ", "))
	case errors.As(err, &invalid), errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.SystemRootsError)):
		return fmt.Sprintf("the certificate of %s is not accepted: %v", hostName(host), withoutURL(err))
	}
	return ""
}

func hostName(host string) string {
	if host == "" {
		return "the server"
	}
	return host
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// withoutURL removes the method and URL that net/http adds to an error.
func withoutURL(err error) error {
	if at, ok := errors.AsType[*url.Error](err); ok {
		return at.Err
	}
	return err
}
