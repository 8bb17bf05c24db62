package llm

import (
	"context"
	"errors"
	"maps"
	"net/http"
)

// Authorized returns the endpoint with a valid token in its headers, for requests that do not use
// Post or Exchange.
func (e Endpoint) Authorized(ctx context.Context) (Endpoint, error) {
	var out Endpoint
	err := e.authorized(ctx, func(e Endpoint) error {
		out = e
		return nil
	})
	return out, err
}

// authorized makes a request with a token, and repeats it once with a new token if the first one is
// refused.
func (e Endpoint) authorized(ctx context.Context, do func(Endpoint) error) error {
	if e.Bearer == nil || e.Headers["Authorization"] != "" {
		return do(e)
	}
	token, err := e.Bearer(ctx, "")
	if err != nil {
		return err
	}
	err = do(e.with(token))
	var refused *Error
	if token == "" || !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		return err
	}
	next, failed := e.Bearer(ctx, token)
	switch {
	case failed != nil:
		return failed
	case next == "" || next == token:
		return err
	}
	return do(e.with(next))
}

// with returns the endpoint with a token.
func (e Endpoint) with(token string) Endpoint {
	e.Bearer = nil
	if token != "" {
		e.Headers = maps.Clone(e.Headers)
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers["Authorization"] = "Bearer " + token
	}
	return e
}
