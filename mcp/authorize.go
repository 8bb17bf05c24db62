package mcp

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// tokenTransport adds the user's token to requests to one server, and tries another token if the server
// refuses the first.
type tokenTransport struct {
	next   http.RoundTripper
	server *url.URL
	login  Login
}

// maxAttempts is the maximum number of times that one request is sent: with the current token, with a
// renewed token, and with a token that another process has stored in the meantime.
const maxAttempts = 3

// loginError means that the user has to log in; cause is the reason.
type loginError struct{ cause error }

func (e *loginError) Error() string { return e.cause.Error() }

// Unwrap makes the error match errUnauthorized.
func (e *loginError) Unwrap() error { return errUnauthorized }

// unauthorized returns the loginError in err, which has a reason, or else errUnauthorized.
func unauthorized(err error) error {
	if login, ok := errors.AsType[*loginError](err); ok {
		return login
	}
	return errUnauthorized
}

// withLogin returns a RoundTripper that adds the user's login to requests, if the launch has one.
func withLogin(l Launch, server *url.URL, next http.RoundTripper) http.RoundTripper {
	if l.Login == nil {
		return next
	}
	return &tokenTransport{next: next, server: server, login: l.Login}
}

// RoundTrip implements http.RoundTripper.
func (a *tokenTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.EqualFold(req.URL.Host, a.server.Host) || req.URL.Scheme != a.server.Scheme {
		return a.next.RoundTrip(req) // a token goes to no other server
	}
	token, err := a.login.Token(req.Context())
	for attempt := 1; ; attempt++ {
		if err != nil {
			closeBody(req)
			return nil, asLoginError(err)
		}
		withToken := req
		if token != "" {
			withToken = req.Clone(req.Context())
			withToken.Header.Set("Authorization", "Bearer "+token)
		}
		resp, sendErr := a.next.RoundTrip(withToken)
		if sendErr != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
			return resp, sendErr
		}
		again, ok := copyForRetry(req)
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

// asLoginError wraps an error in a loginError if only the user can resolve it, by logging in.
func asLoginError(err error) error {
	var loginNeeded interface {
		error
		Needed()
	}
	if errors.As(err, &loginNeeded) {
		return &loginError{loginNeeded}
	}
	return err
}

// copyForRetry returns a copy of a request that has been sent, to send it again. ok is false if its body
// cannot be read a second time.
func copyForRetry(req *http.Request) (again *http.Request, ok bool) {
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
	again = req.Clone(req.Context())
	again.Body = body
	return again, true
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close()
	}
}
