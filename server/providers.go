package server

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// Providers lets the face show providers and log in to them. Errors caused by the client or the
// user are *auth.InvalidError. A notice is a message to the user about a change that was made.
type Providers interface {
	// Providers lists the user's providers, sorted by ID.
	Providers() []llm.Provider
	// Login returns the user's next step to log in. An empty method selects the only one. Login may
	// wait for the provider's login server.
	Login(ctx context.Context, provider, method string) (auth.Step, error)
	LoginInput(ctx context.Context, provider string, values map[string]string) (notice string, err error)
	Logout(ctx context.Context, provider string) (notice string, err error)
}

// logins implement the methods about providers.
type logins struct {
	*connection
	host interface {
		Providers
		SyncModels(ctx context.Context)
	}
	settings *settings
}

// ProvidersList implements protocol.Server.
func (l *logins) ProvidersList(context.Context, protocol.Request[protocol.None]) (protocol.AsyncResult[protocol.ProvidersListResult], error) {
	return func(context.Context) (protocol.ProvidersListResult, error) {
		res := protocol.ProvidersListResult{Providers: []protocol.ProviderStatus{}}
		for _, p := range l.host.Providers() {
			res.Providers = append(res.Providers, providerStatus(p))
		}
		return res, nil
	}, nil
}

// ProvidersLogin implements protocol.Server. A login that completes in the background is announced
// like one that the user entered.
func (l *logins) ProvidersLogin(_ context.Context, req protocol.Request[protocol.LoginParams]) (protocol.AsyncResult[protocol.LoginAction], error) {
	provider := string(req.Params.Provider)
	return func(ctx context.Context) (protocol.LoginAction, error) {
		step, err := l.host.Login(ctx, provider, string(req.Params.Method))
		if err != nil {
			return protocol.LoginAction{}, loginError(err)
		}
		if step.Wait != nil {
			l.background(func() { l.awaitLogin(provider, req.Answered, step.Wait) })
		}
		return loginAction(step), nil
	}, nil
}

func loginAction(step auth.Step) protocol.LoginAction {
	action := protocol.LoginAction{Action: step.Action, URL: step.URL, Code: step.Code}
	switch step.Action {
	case auth.ActionAuthorize, auth.ActionDeviceCode:
		action.Message = step.Message
	case auth.ActionChoose:
		for _, m := range step.Methods {
			action.Methods = append(action.Methods, protocol.LoginMethod{Key: m.Key, Label: m.Label})
		}
	}
	for _, f := range step.Fields {
		kind := "text"
		if f.Secret {
			kind = "secret"
		}
		action.Fields = append(action.Fields, protocol.LoginField{Key: f.Key, Label: f.Label, Type: kind})
	}
	return action
}

// awaitLogin waits for a login in the background and announces its outcome.
func (l *logins) awaitLogin(provider string, answered <-chan struct{}, wait func(context.Context) (string, error)) {
	notice, err := wait(l.ctx)
	switch {
	case l.ctx.Err() != nil, errors.Is(err, auth.ErrAnswered):
	case err != nil:
		l.notify(l.ctx, "$/showMessage", protocol.ShowMessage{Type: "error", Message: "Login to " + provider + ": " + err.Error()})
	default:
		l.changeProvider(provider, answered, func() (string, error) { return notice, nil })
	}
}

// ProvidersLoginInput implements protocol.Server.
func (l *logins) ProvidersLoginInput(_ context.Context, req protocol.Request[protocol.LoginInputParams]) (protocol.AsyncResult[protocol.LoginAction], error) {
	provider, values := string(req.Params.Provider), map[string]string{}
	for k, v := range req.Params.Data {
		values[k] = string(v)
	}
	done := l.changeProvider(provider, req.Answered, func() (string, error) {
		return l.host.LoginInput(l.ctx, provider, values)
	})
	return func(context.Context) (protocol.LoginAction, error) {
		if err := <-done; err != nil {
			return protocol.LoginAction{}, err
		}
		return protocol.LoginAction{Action: "done"}, nil
	}, nil
}

// ProvidersLogout implements protocol.Server.
func (l *logins) ProvidersLogout(_ context.Context, req protocol.Request[protocol.ProviderParams]) (protocol.AsyncResult[protocol.Empty], error) {
	provider := string(req.Params.Provider)
	done := l.changeProvider(provider, req.Answered, func() (string, error) {
		return l.host.Logout(l.ctx, provider)
	})
	return func(context.Context) (protocol.Empty, error) { return protocol.Empty{}, <-done }, nil
}

// changeProvider makes a change and sends the client its effects after the answer. The provider's
// status comes last, because one client repeats its prompt as soon as it gets the status
// (eca-protocol.md 11.6). The status is sent even if it has not changed.
func (l *logins) changeProvider(id string, answered <-chan struct{}, change func() (notice string, err error)) <-chan error {
	done := make(chan error, 1)
	l.changeInOrder(func() func() {
		notice, err := "", errors.New("internal error") // unless change returns
		defer func() { done <- loginError(err) }()
		if notice, err = change(); err != nil {
			return nil
		}
		return func() {
			select {
			case <-answered:
			case <-l.ctx.Done():
			}
			if notice != "" {
				l.notify(l.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: notice})
			}
			l.settings.resendProvider(id)
			l.settings.push(l.ctx)
			l.host.SyncModels(l.ctx) // may take seconds
			l.settings.push(l.ctx)
		}
	})
	return done
}

// resendProvider makes the next push send a provider's status.
func (s *settings) resendProvider(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.providers == nil {
		s.providers = map[string]protocol.ProviderStatus{}
	}
	s.providers[id] = protocol.ProviderStatus{ID: id}
}

// resendProviders makes the next push send the status of every provider.
func (s *settings) resendProviders() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.providers = map[string]protocol.ProviderStatus{}
}

// pushProviders sends the providers that changed (eca-protocol.md 4.11). The first push sends
// nothing: clients request the list when they show it.
func (s *settings) pushProviders(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := map[string]protocol.ProviderStatus{}
	for _, p := range s.host.Providers() {
		now[p.ID] = providerStatus(p)
	}
	for _, id := range slices.Sorted(maps.Keys(s.providers)) {
		if _, ok := now[id]; !ok {
			s.notify(ctx, "providers/updated", providerStatus(llm.Provider{ID: id, Auth: auth.Status{State: auth.Unauthenticated}}))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if s.providers != nil && !reflect.DeepEqual(s.providers[id], now[id]) {
			s.notify(ctx, "providers/updated", now[id])
		}
	}
	s.providers = now
}

func loginError(err error) error {
	var invalid *auth.InvalidError
	if errors.As(err, &invalid) {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", invalid.Reason)
	}
	return err
}

func providerStatus(p llm.Provider) protocol.ProviderStatus {
	out := protocol.ProviderStatus{
		ID: p.ID, Label: p.Label, Configured: p.Configured,
		Auth: protocol.ProviderAuth{
			Status: string(p.Auth.State), Type: p.Auth.Type, Source: string(p.Auth.Source), EnvVar: p.Auth.Variable, Mode: p.Auth.Mode,
		},
		Models: []protocol.ProviderModel{}, Settings: providerSettings(p),
	}
	if at := p.Auth.Expires; !at.IsZero() {
		out.Auth.ExpiresAt = at.Unix()
	}
	if len(p.Methods) > 0 {
		out.Login = &protocol.ProviderLogin{}
		for _, m := range p.Methods {
			out.Login.Methods = append(out.Login.Methods, protocol.LoginMethod{Key: m.Key, Label: m.Label})
		}
	}
	for _, m := range p.Models {
		out.Models = append(out.Models, providerModel(m))
	}
	return out
}

// providerModel describes what a model can do, and which tools of its provider it may use.
func providerModel(m llm.ProviderModel) protocol.ProviderModel {
	out := protocol.ProviderModel{ID: m.Name, Capabilities: protocol.ModelCapabilities{
		Reason: m.Reasoning.Value, Vision: m.Images.Value, Tools: m.Tools.Value,
		WebSearch: m.ServerTools.WebSearch, ImageGen: m.ServerTools.ImageGeneration,
	}}
	if m.InputCost.Known() && m.OutputCost.Known() {
		out.Cost = &protocol.ModelCost{Input: m.InputCost.Value / 1e6, Output: m.OutputCost.Value / 1e6}
	}
	return out
}

// providerSettings shows a provider's configuration. Values that may be secret are left out or masked.
func providerSettings(p llm.Provider) map[string]any {
	out := map[string]any{}
	if p.API != "" {
		out["api"] = p.API
	}
	if p.URL != "" {
		out["url"] = strings.TrimRight(p.URL, "/")
	}
	if p.FetchModels != nil {
		out["fetchModels"] = *p.FetchModels
	}
	if len(p.Headers) > 0 {
		headers := map[string]string{}
		for _, name := range p.Headers {
			headers[name] = redact.Mark
		}
		out["extraHeaders"] = headers
	}
	return out
}
