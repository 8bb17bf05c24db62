package a2a

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

// Notifier sends notifications to addresses that callers name, none of which it trusts
// (daemon.Daemon).
type Notifier interface {
	// Webhooks reports whether notifications are enabled.
	Webhooks() bool
	// CheckWebhook says why nothing can be sent to an address.
	CheckWebhook(address string) error
	// PostWebhook sends a body and returns the status of the answer.
	PostWebhook(ctx context.Context, address string, header http.Header, body []byte) (status int, err error)
}

// The limits of push configurations.
const (
	maxHooks      = 10 // of a task
	maxHookID     = 256
	maxCredential = 8 << 10 // of a token, a scheme or credentials, in bytes
)

// pushConfig is the address for notifications of a task's changes (TaskPushNotificationConfig).
type pushConfig struct {
	Tenant         string    `json:"tenant,omitempty"`
	ID             string    `json:"id"`
	TaskID         string    `json:"taskId,omitempty"`
	URL            string    `json:"url"`
	Token          string    `json:"token,omitempty"`
	Authentication *pushAuth `json:"authentication,omitempty"`
}

// pushAuth is the authentication of a notification's sender.
type pushAuth struct {
	Scheme      string   `json:"scheme,omitempty"`
	Schemes     []string `json:"schemes,omitempty"` // of 0.3; only one is used
	Credentials string   `json:"credentials,omitempty"`
}

// pushParams are the parameters of the methods about configurations, in 1.0 and in 0.3. ID is the
// id of the configuration, or that of the task in calls of 0.3 without taskId.
type pushParams struct {
	pushConfig
	Config   *pushConfig `json:"pushNotificationConfig"`   // 0.3
	ConfigID string      `json:"pushNotificationConfigId"` // 0.3
}

// push carries out a method about configurations.
func (s *Server) push(c *call) (any, error) {
	if !s.pushes() {
		return nil, failure(codeNoPush, "push notifications are not supported: they are off, or this server cannot send them")
	}
	var p pushParams
	if err := decode(c.params, &p); err != nil {
		return nil, err
	}
	taskID, id := p.TaskID, p.ID
	if c.legacy && c.method != "CreateTaskPushNotificationConfig" {
		taskID, id = cmp.Or(p.TaskID, p.ID), p.ConfigID
	}
	j, err := s.tasks.find(taskID)
	if err != nil {
		return nil, err
	}
	switch c.method {
	case "CreateTaskPushNotificationConfig":
		config := p.pushConfig
		if p.Config != nil {
			config = *p.Config
		}
		made, err := s.notify(j, config, c.legacy)
		if err != nil {
			return nil, err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.save()
		return c.shownConfig(made), nil
	case "GetTaskPushNotificationConfig":
		config, ok := j.hooked(id, c.legacy)
		if !ok {
			return nil, failure(codeNotFound, "task %q has no push notification configuration %q", j.id, id)
		}
		return c.shownConfig(config), nil
	case "ListTaskPushNotificationConfigs":
		configs := []any{}
		for _, h := range j.listeners() {
			configs = append(configs, c.shownConfig(h.config.public()))
		}
		if c.legacy {
			return configs, nil
		}
		return configList{configs, ""}, nil
	}
	if id == "" {
		return nil, failure(codeParams, "the id of the configuration is missing")
	}
	j.unhook(id)
	if c.legacy {
		return nil, nil //nolint:nilnil // the answer of 0.3 is null
	}
	return struct{}{}, nil
}

type configList struct {
	Configs []any  `json:"configs"`
	Next    string `json:"nextPageToken"`
}

func (s *Server) pushes() bool { return s.notifier != nil && s.notifier.Webhooks() }

// shownConfig returns a configuration in the caller's version.
func (c *call) shownConfig(p pushConfig) any {
	if !c.legacy {
		return p
	}
	shown := legacyConfig{pushConfig{ID: p.ID, URL: p.URL, Token: p.Token}, p.TaskID}
	if a := p.Authentication; a != nil {
		shown.Config.Authentication = &pushAuth{Schemes: []string{a.Scheme}, Credentials: a.Credentials}
	}
	return shown
}

// legacyConfig is a configuration in the form of 0.3.
type legacyConfig struct {
	Config pushConfig `json:"pushNotificationConfig"`
	TaskID string     `json:"taskId"`
}

// public returns a configuration without the data that authenticates the sender: all callers of a
// server can read it.
func (p pushConfig) public() pushConfig {
	p.Token = ""
	if p.Authentication != nil {
		p.Authentication = &pushAuth{Scheme: p.Authentication.Scheme}
	}
	return p
}

// checkPush refuses configurations that no notification could be sent for, and converts others to
// the form of 1.0.
func (s *Server) checkPush(p *pushConfig) error {
	if p.URL == "" {
		return failure(codeParams, "the url of the push notification configuration is missing")
	}
	if err := s.notifier.CheckWebhook(p.URL); err != nil {
		return failure(codeParams, "the url of the push notification configuration: %v", err)
	}
	if len(p.ID) > maxHookID {
		return failure(codeParams, "the id of a push notification configuration has %d bytes at most", maxHookID)
	}
	fields := []struct{ name, text string }{{"token", p.Token}}
	if a := p.Authentication; a != nil {
		scheme := a.Scheme
		if i := slices.IndexFunc(a.Schemes, func(s string) bool { return strings.EqualFold(s, "Bearer") }); scheme == "" && i >= 0 {
			scheme = a.Schemes[i]
		} else if scheme == "" && len(a.Schemes) > 0 {
			scheme = a.Schemes[0]
		}
		if scheme == "" || strings.ContainsAny(scheme, " \t,") {
			return failure(codeParams, "authentication.scheme must be one of HTTP's, as Bearer, not %q", scheme)
		}
		p.Authentication = &pushAuth{Scheme: scheme, Credentials: a.Credentials}
		fields = append(fields, []struct{ name, text string }{{"authentication.scheme", scheme}, {"authentication.credentials", a.Credentials}}...)
	}
	for _, f := range fields {
		if len(f.text) > maxCredential || strings.ContainsFunc(f.text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return failure(codeParams, "%s cannot be sent in a header: it must be printable ASCII of at most %d bytes", f.name, maxCredential)
		}
	}
	return nil
}

// header returns the headers that identify the sender and the kind of a notification. Receivers
// look for the token under either name.
func (h *hook) header() http.Header {
	out := http.Header{"Content-Type": {"application/a2a+json"}}
	if h.legacy {
		out.Set("Content-Type", "application/json")
	}
	if t := h.config.Token; t != "" {
		out.Set("A2A-Notification-Token", t)
		out.Set("X-A2A-Notification-Token", t)
	}
	if a := h.config.Authentication; a != nil {
		out.Set("Authorization", strings.TrimSpace(a.Scheme+" "+a.Credentials))
	}
	return out
}

// notify registers a configuration for a task's changes. It replaces a configuration with the same
// id.
func (s *Server) notify(j *job, p pushConfig, legacy bool) (pushConfig, error) {
	if err := s.checkPush(&p); err != nil {
		return pushConfig{}, err
	}
	p.TaskID = j.id
	if p.ID == "" {
		p.ID = s.newID()
		if legacy {
			p.ID = j.id // as in 0.3
		}
	}
	h := &hook{config: p, legacy: legacy}
	h.ctx, h.cancel = context.WithCancel(s.posting)
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.IndexFunc(j.hooks, func(other *hook) bool { return other.config.ID == p.ID })
	switch {
	case at >= 0:
		j.hooks[at].cancel()
		j.hooks[at] = h
	case len(j.hooks) >= maxHooks:
		h.cancel()
		return pushConfig{}, failure(codeParams, "a task has %d push notification configurations at most", maxHooks)
	default:
		j.hooks = append(j.hooks, h)
	}
	return p, nil
}

func (j *job) listeners() []*hook {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.hooks)
}

// hooked returns a configuration without its secrets. In 0.3 the id may be missing.
func (j *job) hooked(id string, legacy bool) (pushConfig, bool) {
	for _, h := range j.listeners() {
		if h.config.ID == id || legacy && id == "" {
			return h.config.public(), true
		}
	}
	return pushConfig{}, false
}

// unhook ends notifications, including pending ones.
func (j *job) unhook(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.hooks = slices.DeleteFunc(j.hooks, func(h *hook) bool {
		if h.config.ID != id {
			return false
		}
		h.cancel()
		return true
	})
	j.save()
}
