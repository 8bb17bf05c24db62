package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// scriptedLogin gives tokens in order.
type scriptedLogin struct {
	tokens  []string
	err     error
	refused []string
}

func (l *scriptedLogin) next() string {
	if len(l.tokens) == 0 {
		return ""
	}
	token := l.tokens[0]
	l.tokens = l.tokens[1:]
	return token
}

func (l *scriptedLogin) Token(context.Context) (string, error) { return l.next(), nil }

func (l *scriptedLogin) Refused(_ context.Context, status int, headers []string, sent string) (string, error) {
	l.refused = append(l.refused, fmt.Sprint(status, headers, sent))
	if len(l.tokens) == 0 {
		return "", l.err
	}
	return l.next(), nil
}

type wantsUser struct{}

func (wantsUser) Error() string { return "log in, please" }
func (wantsUser) Needed()       {}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests carry the token to their server only. They are repeated unchanged while there is another
// token, but not forever.
func TestAuthorized(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		tokens  []string
		err     error
		good    string // the token that the server accepts
		status  int    // of the server's refusal
		want    string
		sent    string
	}{
		"no login":      {"", nil, nil, "", 0, "200", "-"},
		"good":          {"", []string{"a"}, nil, "a", 401, "200", "a"},
		"renewed":       {"", []string{"a", "b"}, nil, "b", 401, "200", "a b"},
		"never":         {"", []string{"a", "b", "c", "d"}, nil, "z", 401, "401", "a b c"},
		"not a login":   {"", []string{"a"}, nil, "z", 403, "403", "a"},
		"the user":      {"", []string{"a"}, wantsUser{}, "z", 401, "log in, please true", "a"},
		"out of order":  {"", []string{"a"}, errors.New("no route"), "z", 401, "no route false", "a"},
		"another host":  {"https://other.example/mcp", []string{"a"}, nil, "a", 401, "401", "-"},
		"another port":  {"https://mcp.example:444/mcp", []string{"a"}, nil, "a", 401, "401", "-"},
		"without TLS":   {"http://mcp.example/mcp", []string{"a"}, nil, "a", 401, "401", "-"},
		"another place": {"https://mcp.example/other", []string{"a"}, nil, "a", 401, "200", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent []string
			login := &scriptedLogin{tokens: c.tokens, err: c.err}
			server, _ := url.Parse("https://mcp.example/mcp")
			a := &tokenTransport{server: server, login: login, next: tripper(func(r *http.Request) (*http.Response, error) {
				body, err := io.ReadAll(r.Body)
				if string(body) != "the body" || err != nil {
					t.Errorf("the body: %q, %v", body, err)
				}
				token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				status := c.status
				if token == c.good {
					status = http.StatusOK
				}
				if token == "" {
					token = "-"
				}
				sent = append(sent, token)
				return &http.Response{StatusCode: status, Header: http.Header{"Www-Authenticate": {"Bearer"}}, Body: io.NopCloser(strings.NewReader("why"))}, nil
			})}
			address := c.address
			if address == "" {
				address = server.String()
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("the body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := a.RoundTrip(req)
			got := ""
			if err != nil {
				got = fmt.Sprint(err, errors.Is(err, errUnauthorized))
			} else {
				got = fmt.Sprint(resp.StatusCode)
				if body, _ := io.ReadAll(resp.Body); string(body) != "why" {
					t.Errorf("the answer's body: %q", body)
				}
				_ = resp.Body.Close()
			}
			if got != c.want || strings.Join(sent, " ") != c.sent {
				t.Errorf("%s after %v", got, sent)
			}
			if req.Header.Get("Authorization") != "" {
				t.Error("the caller's request was changed")
			}
		})
	}
}
