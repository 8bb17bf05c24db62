package providers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// GitHub Copilot wants a key of its own, good for minutes, that it gives for a login at
// GitHub (eca-features 5.2). The login is with the user's own client id; eca says who it
// is. GitHub decides whom it gives keys.
const (
	copilot = "github-copilot"
	// copilotDefault is the model that every account has, as the reference server assumes.
	copilotDefault = "gpt-5.5"
	copilotURL     = "https://api.githubcopilot.com" // if GitHub names no other
)

// copilotKey is a key and how long it is good.
type copilotKey struct {
	key, url string
	expires  time.Time
	login    string // the token of the login it was given for
}

// copilotHost is the GitHub where the user is.
func copilotHost(p config.Provider) string {
	return strings.TrimRight(cmp.Or(p.Auth.URL, "https://github.com"), "/")
}

// copilotAPI is that GitHub's API.
func copilotAPI(p config.Provider) string {
	if host := copilotHost(p); host != "https://github.com" {
		return host + "/api/v3"
	}
	return "https://api.github.com"
}

// copilotKey returns a key that is good for a while. rejected is one that Copilot did
// not take.
func (v logins) copilotKey(ctx context.Context, p config.Provider, rejected string) (string, error) {
	select {
	case v.copilotTurn <- struct{}{}: // one question for all who wait
		defer func() { <-v.copilotTurn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c, err := v.login(ctx, copilot, p, "")
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	have := v.copilotHas
	v.mu.Unlock()
	if have.login == c.Access.Reveal() && have.key != rejected && have.expires.Sub(v.opts.Now()) > time.Minute {
		return have.key, nil
	}
	got, err := v.copilotExchange(ctx, p, c.Access.Reveal())
	var refused *llm.Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		// GitHub takes the login no more: renew it, or end it.
		if c, err = v.login(ctx, copilot, p, c.Access.Reveal()); err != nil {
			return "", err
		}
		got, err = v.copilotExchange(ctx, p, c.Access.Reveal())
	}
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	v.copilotHas = got
	v.mu.Unlock()
	return got.key, nil
}

// copilotExchange asks GitHub for a key. Errors are *llm.Error.
func (v logins) copilotExchange(ctx context.Context, p config.Provider, login string) (copilotKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, copilotAPI(p)+"/copilot_internal/v2/token", nil)
	if err != nil {
		return copilotKey{}, &llm.Error{Kind: llm.ErrBadRequest, Message: "github-copilot: auth.url is not a URL", Cause: err}
	}
	maps.Copy(req.Header, http.Header{
		"Authorization": {"Bearer " + login}, "Accept": {"application/json"}, "User-Agent": {"eca"}, "Editor-Version": {v.copilotVersion()},
	})
	client := *v.oauthClient(copilot, p).HTTP
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return copilotKey{}, &llm.Error{Kind: llm.ErrNetwork, Message: "GitHub cannot be reached for a key of Copilot", Cause: err}
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusForbidden || s == http.StatusNotFound:
		return copilotKey{}, &llm.Error{Kind: llm.ErrAuth, Status: s, Message: fmt.Sprintf("GitHub gives no key of Copilot to this login (status %d): "+
			"the account has no Copilot, or GitHub has not admitted the application of your auth.clientId. eca does not pretend to be an application that is", s)}
	case s != http.StatusOK:
		return copilotKey{}, llm.StatusError("GitHub", resp, "no key of Copilot", v.opts.Now())
	}
	var got struct {
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
		Endpoints struct {
			API string `json:"api"`
		} `json:"endpoints"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&got) != nil || got.Token == "" || !headerSafe(got.Token) {
		return copilotKey{}, &llm.Error{Kind: llm.ErrProtocol, Message: "GitHub's answer has no key of Copilot"}
	}
	return copilotKey{key: got.Token, url: cmp.Or(got.Endpoints.API, copilotURL), expires: time.Unix(got.ExpiresAt, 0), login: login}, nil
}

// copilotVersion is the name and version of the editor, which is eca's: it knows no other.
func (m *Models) copilotVersion() string { return "eca/" + cmp.Or(m.opts.Version, "dev") }

// copilotFacts completes a new login with what only a key tells: that there is one, and
// where it is good.
func (v logins) copilotFacts(ctx context.Context, p config.Provider, c *auth.Credential) error {
	got, err := v.copilotExchange(ctx, p, c.Access.Reveal())
	if err != nil {
		return err
	}
	c.URL = got.url
	c.For.Provider = serverOf(cmp.Or(p.URL, c.URL))
	return nil
}

// copilotModel tells Copilot whether a user asked or a model that goes on alone: that
// decides what a request counts.
type copilotModel struct{ llm.Model }

// Stream implements llm.Model.
func (c copilotModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	initiator := "agent"
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.User && !answersCalls(req.Messages[n-1]) {
		initiator = "user"
	}
	headers := map[string]string{"X-Initiator": initiator}
	maps.Copy(headers, req.Headers)
	req.Headers = headers
	return c.Model.Stream(ctx, req)
}

func answersCalls(m llm.Message) bool {
	for _, p := range m.Parts {
		if _, ok := p.(llm.ToolResult); ok {
			return true
		}
	}
	return false
}

// copilotModels asks Copilot for its models. Those that do not speak Chat Completions,
// and those that are not for chats, are left out.
func copilotModels(ctx context.Context, at llm.Endpoint) (map[string]llm.Facts, error) {
	at.URL = strings.TrimRight(at.URL, "/") + "/models"
	var list struct {
		Data []struct {
			ID           string   `json:"id"`
			Endpoints    []string `json:"supported_endpoints"`
			Capabilities struct {
				Type   string `json:"type"`
				Limits struct {
					Context int64 `json:"max_context_window_tokens"`
					Output  int64 `json:"max_output_tokens"`
				} `json:"limits"`
				Supports struct {
					Vision *bool `json:"vision"`
					Tools  *bool `json:"tool_calls"`
				} `json:"supports"`
			} `json:"capabilities"`
		} `json:"data"`
	}
	if err := at.Exchange(ctx, nil, &list); err != nil {
		return nil, err
	}
	out := map[string]llm.Facts{}
	for _, m := range list.Data {
		c := m.Capabilities
		if m.ID == "" || c.Type != "" && c.Type != "chat" || len(m.Endpoints) > 0 && !slices.Contains(m.Endpoints, "/chat/completions") {
			continue
		}
		f := llm.Facts{Context: copilotSays(&c.Limits.Context), Output: copilotSays(&c.Limits.Output), Images: copilotSays(c.Supports.Vision), Tools: copilotSays(c.Supports.Tools)}
		if c.Limits.Context <= 0 {
			f.Context = llm.Fact[int64]{}
		}
		if c.Limits.Output <= 0 {
			f.Output = llm.Fact[int64]{}
		}
		out[m.ID] = f
	}
	return out, nil
}

func copilotSays[T any](v *T) llm.Fact[T] {
	if v == nil {
		return llm.Fact[T]{}
	}
	return llm.Fact[T]{Value: *v, Source: llm.FromProvider}
}
