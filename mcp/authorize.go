package mcp

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// authorized adds the user's token to requests to one server, and tries another token if the server
// refuses the first.
type authorized struct {
	next   http.RoundTripper
	server *url.URL
	login  Login
}

// maxAttempts is how often one request is sent: with the current token, with a new one, and with
// one that another process has stored meanwhile.
const maxAttempts = 3

// loginError means that the user has to log in; cause is the reason.
type loginError struct{ cause error }

func (e *loginError) Error() string { return e.cause.Error() }

// Unwrap makes the error match errUnauthorized.
func (e *loginError) Unwrap() error { return errUnauthorized }

// unauthorized returns err as a loginError with its reason, or errUnauthorized without one.
func unauthorized(err error) error {
	if login, ok := errors.AsType[*loginError](err); ok {
		return login
	}
	return errUnauthorized
}

// withLogin adds the user's login to requests, if the server can have one.
func withLogin(l Launch, server *url.URL, next http.RoundTripper) http.RoundTripper {
	if l.Login == nil {
		return next
	}
	return &authorized{next: next, server: server, login: l.Login}
}

// RoundTrip implements http.RoundTripper.
func (a *authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.EqualFold(req.URL.Host, a.server.Host) || req.URL.Scheme != a.server.Scheme {
		return a.next.RoundTrip(req) // a token goes to no other server
	}
	token, err := a.login.Token(req.Context())
	for attempt := 1; ; attempt++ {
		if err != nil {
			closeBody(req)
			return nil, needed(err)
		}
		this := req
		if token != "" {
			this = req.Clone(req.Context())
			this.Header.Set("Authorization", "Bearer "+token)
		}
		resp, failed := a.next.RoundTrip(this)
		if failed != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, failed
		}
		again, ok := repeated(req)
		if !ok || attempt == maxAttempts {
			return resp, nil
		}
		if token, err = a.login.Refused(req.Context(), resp.StatusCode, resp.Header.Values("WWW-Authenticate"), token); token == "" && err == nil {
			closeBody(again)
			return resp, nil
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefused)) // so that the connection can be used again
		_ = resp.Body.Close()
		req = again
	}
}

// maxRefused is how many bytes of a refusal's unused body are read.
const maxRefused = 64 << 10

// needed converts an error that requires the user to log in to a loginError.
func needed(err error) error {
	var user interface {
		error
		Needed()
	}
	if errors.As(err, &user) {
		return &loginError{user}
	}
	return err
}

// repeated returns a request that can be sent again, if its body allows that.
func repeated(req *http.Request) (*http.Request, bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, false
	}
	again := req.Clone(req.Context())
	again.Body = body
	return again, true
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
