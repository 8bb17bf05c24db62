package a2a

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
)

// Notifier sends notifications to addresses from callers, which it must not trust. daemon.Daemon
// implements it.
type Notifier interface {
	// Webhooks reports whether notifications are enabled.
	Webhooks() bool
	// CheckWebhook returns an error if notifications cannot be sent to an address.
	CheckWebhook(address string) error
	// PostWebhook sends a body and returns the status of the answer.
	PostWebhook(ctx context.Context, address string, header http.Header, body []byte) (status int, err error)
}

// The limits of push configurations.
const (
	maxHooks      = 10      // configurations of a task
	maxHookID     = 256     // bytes of a configuration's id
	maxCredential = 8 << 10 // bytes of a token, a scheme or credentials
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

// pushAuth is how eca authenticates to the receiver of notifications.
type pushAuth struct {
	Scheme      string   `json:"scheme,omitempty"`
	Schemes     []string `json:"schemes,omitempty"` // 0.3; only one is used
	Credentials string   `json:"credentials,omitempty"`
}

// pushParams are the parameters of the push configuration methods, in 1.0 and in 0.3. ID is the id
// of the configuration, or that of the task in 0.3 calls without taskId.
type pushParams struct {
	pushConfig
	Config   *pushConfig `json:"pushNotificationConfig"`   // 0.3
	ConfigID string      `json:"pushNotificationConfigId"` // 0.3
}

// push executes a method about push configurations.
func (s *Server) push(c *call) (any, error) {
	if !s.pushEnabled() {
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
		created, err := s.registerHook(j, config, c.legacy)
		if err != nil {
			return nil, err
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		j.save()
		return c.shownConfig(created), nil
	case "GetTaskPushNotificationConfig":
		config, ok := j.hookConfig(id, c.legacy)
		if !ok {
			return nil, failure(codeNotFound, "task %q has no push notification configuration %q", j.id, id)
		}
		return c.shownConfig(config), nil
	case "ListTaskPushNotificationConfigs":
		configs := []any{}
		for _, h := range j.currentHooks() {
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
	j.removeHook(id)
	if c.legacy {
		return nil, nil //nolint:nilnil // the answer of 0.3 is null
	}
	return struct{}{}, nil
}

type configList struct {
	Configs []any  `json:"configs"`
	Next    string `json:"nextPageToken"`
}

func (s *Server) pushEnabled() bool { return s.opts.Notifier != nil && s.opts.Notifier.Webhooks() }

// shownConfig returns a configuration in the form of the caller's version of A2A.
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

// public returns a configuration without its secrets, because every caller of the server can read
// it.
func (p pushConfig) public() pushConfig {
	p.Token = ""
	if p.Authentication != nil {
		p.Authentication = &pushAuth{Scheme: p.Authentication.Scheme}
	}
	return p
}

// checkPush refuses configurations that cannot be used to send notifications, and converts
// authentication from the form of 0.3.
func (s *Server) checkPush(p *pushConfig) error {
	if p.URL == "" {
		return failure(codeParams, "the url of the push notification configuration is missing")
	}
	if err := s.opts.Notifier.CheckWebhook(p.URL); err != nil {
		return failure(codeParams, "the url of the push notification configuration: %v", err)
	}
	if len(p.ID) > maxHookID {
		return failure(codeParams, "the id of a push notification configuration must not exceed %d bytes", maxHookID)
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
			return failure(codeParams, "authentication.scheme must be an HTTP scheme such as Bearer, not %q", scheme)
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

// header returns the headers of a notification. The token has two names, because some receivers read
// one and some the other.
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

// registerHook adds a push configuration to a task. It replaces a configuration with the same id.
func (s *Server) registerHook(j *job, p pushConfig, legacy bool) (pushConfig, error) {
	if err := s.checkPush(&p); err != nil {
		return pushConfig{}, err
	}
	p.TaskID = j.id
	if p.ID == "" {
		p.ID = s.opts.NewID()
		if legacy {
			p.ID = j.id // as in 0.3
		}
	}
	h := &hook{config: p, legacy: legacy}
	h.ctx, h.cancel = context.WithCancel(s.postCtx)
	j.mu.Lock()
	defer j.mu.Unlock()
	at := slices.IndexFunc(j.hooks, func(other *hook) bool { return other.config.ID == p.ID })
	switch {
	case at >= 0:
		j.hooks[at].cancel()
		j.hooks[at] = h
	case len(j.hooks) >= maxHooks:
		h.cancel()
		return pushConfig{}, failure(codeParams, "a task can have at most %d push notification configurations", maxHooks)
	default:
		j.hooks = append(j.hooks, h)
	}
	return p, nil
}

func (j *job) currentHooks() []*hook {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.hooks)
}

// hookConfig returns a configuration without its secrets. In 0.3 the id may be missing.
func (j *job) hookConfig(id string, legacy bool) (pushConfig, bool) {
	for _, h := range j.currentHooks() {
		if h.config.ID == id || legacy && id == "" {
			return h.config.public(), true
		}
	}
	return pushConfig{}, false
}

// removeHook removes a push configuration and drops its pending notifications.
func (j *job) removeHook(id string) {
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
