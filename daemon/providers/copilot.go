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

// GitHub Copilot requires a key of its own, valid for minutes, which GitHub issues for a GitHub
// login (eca-features.md 5.2). The login uses the user's own client id, and eca identifies itself as
// eca. GitHub decides which applications get keys.
const (
	copilot = "github-copilot"
	// copilotDefault is a model that every account has, as the reference server assumes.
	copilotDefault = "gpt-5.5"
	copilotURL     = "https://api.githubcopilot.com" // unless GitHub returns another one
)

// copilotKey is a key and its expiry time.
type copilotKey struct {
	key, url string
	expires  time.Time
	login    string // the access token it was issued for
}

// copilotHost returns the URL of the user's GitHub instance.
func copilotHost(p config.Provider) string {
	return strings.TrimRight(cmp.Or(p.Auth.URL, "https://github.com"), "/")
}

// copilotAPI returns the API URL of the user's GitHub instance.
func copilotAPI(p config.Provider) string {
	if host := copilotHost(p); host != "https://github.com" {
		return host + "/api/v3"
	}
	return "https://api.github.com"
}

// copilotKey returns a key that is valid for at least a minute. rejected is a key that Copilot
// refused, or empty.
func (v logins) copilotKey(ctx context.Context, p config.Provider, rejected string) (string, error) {
	select {
	case v.copilotLock <- struct{}{}: // one request for all waiting callers
		defer func() { <-v.copilotLock }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	c, err := v.login(ctx, copilot, p, "")
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	have := v.copilotCached
	v.mu.Unlock()
	if have.login == c.Access.Reveal() && have.key != rejected && have.expires.Sub(v.opts.Now()) > time.Minute {
		return have.key, nil
	}
	got, err := v.copilotExchange(ctx, p, c.Access.Reveal())
	var refused *llm.Error
	if errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		// GitHub no longer accepts the login: renew it, or end it.
		if c, err = v.login(ctx, copilot, p, c.Access.Reveal()); err != nil {
			return "", err
		}
		got, err = v.copilotExchange(ctx, p, c.Access.Reveal())
	}
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	v.copilotCached = got
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
		return copilotKey{}, &llm.Error{Kind: llm.ErrNetwork, Message: "cannot reach GitHub to get a Copilot key", Cause: err}
	}
	defer resp.Body.Close()
	switch s := resp.StatusCode; {
	case s == http.StatusForbidden || s == http.StatusNotFound:
		return copilotKey{}, &llm.Error{Kind: llm.ErrAuth, Status: s, Message: fmt.Sprintf("GitHub does not issue a Copilot key for this login (status %d): "+
			"the account has no Copilot, or GitHub has not admitted the application of your auth.clientId. eca does not pretend to be an admitted application", s)}
	case s != http.StatusOK:
		return copilotKey{}, llm.StatusError("GitHub", resp, "no Copilot key", v.opts.Now())
	}
	var got struct {
		Token     string `json:"token"`
		ExpiresAt int64  `json:"expires_at"`
		Endpoints struct {
			API string `json:"api"`
		} `json:"endpoints"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&got) != nil || got.Token == "" || !headerSafe(got.Token) {
		return copilotKey{}, &llm.Error{Kind: llm.ErrProtocol, Message: "GitHub's answer has no Copilot key"}
	}
	return copilotKey{key: got.Token, url: cmp.Or(got.Endpoints.API, copilotURL), expires: time.Unix(got.ExpiresAt, 0), login: login}, nil
}

// copilotVersion returns the editor name and version to send: those of eca, because eca does not
// know the editor's.
func (m *Models) copilotVersion() string { return "eca/" + cmp.Or(m.opts.Version, "dev") }

// copilotFacts completes a new login: it requests a key, which shows that the account has Copilot,
// and stores the API URL that comes with it.
func (v logins) copilotFacts(ctx context.Context, p config.Provider, c *auth.Credential) error {
	got, err := v.copilotExchange(ctx, p, c.Access.Reveal())
	if err != nil {
		return err
	}
	c.URL = got.url
	c.For.Provider = serverOf(cmp.Or(p.URL, c.URL))
	return nil
}

// copilotModel adds a header that tells Copilot whether the request comes from the user or
// continues an agent's work, which decides how Copilot bills it.
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

// copilotModels asks Copilot for its models. It leaves out models without Chat Completions and
// models that are not for chats.
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
		f := llm.Facts{Context: copilotFact(&c.Limits.Context), Output: copilotFact(&c.Limits.Output), Images: copilotFact(c.Supports.Vision), Tools: copilotFact(c.Supports.Tools)}
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

func copilotFact[T any](v *T) llm.Fact[T] {
	if v == nil {
		return llm.Fact[T]{}
	}
	return llm.Fact[T]{Value: *v, Source: llm.FromProvider}
}
