package remote

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
)

// promptPatience is how long a request waits for the answer to its prompt. A command is answered only
// when it has ended, and pages give up after 15 seconds.
const promptPatience = 5 * time.Second

// prompt answers POST chats/ID/prompt. If the prompt is refused, the device's streams show it with the
// reason, because the page no longer has the text and does not show the answer.
func (f api) prompt(c *call) (any, error) {
	message, id := c.text("message"), c.path("id")
	if message == "" {
		return nil, badRequest("message is missing")
	}
	if !chat.ValidID(id) {
		return nil, badRequest("the chat's id is not valid")
	}
	params := map[string]any{"chatId": id}
	for _, key := range []string{"message", "model", "agent", "variant", "contexts"} {
		if value, ok := c.body[key]; ok {
			params[key] = value
		}
	}
	on, given := c.flag("trust")
	switch {
	case c.device.Rights < Control:
		return f.refuse(c, message, http.StatusForbidden, "forbidden", "This device may only watch, so the prompt was not sent.")
	case on && c.device.Rights < Trust:
		return f.refuse(c, message, http.StatusForbidden, "forbidden", "This device may not turn on auto-approve, so the prompt was not sent.")
	case c.device.Rights < f.Needs("chat/prompt", encode(params)):
		return f.refuse(c, message, http.StatusForbidden, "forbidden", chat.ErrLimited.Error())
	case given:
		params["trust"] = on
	}
	if model := c.text("model"); model != "" {
		session, _, err := f.opts.Engine.OpenExisting(c.ctx, id)
		if err != nil {
			return nil, err
		}
		if err := f.checkModel(c.ctx, session, model); err != nil {
			return f.refuse(c, message, http.StatusConflict, promptRefused, "The prompt was not sent: "+err.Error())
		}
	}
	params["limited"] = c.device.Rights < Trust
	type outcome struct {
		result any
		err    error
	}
	done := make(chan outcome, 1)
	f.work.Go(func() {
		result, refusal, err := f.hub.prompt(f.ctx, id, params)
		var r struct {
			Status string `json:"status"`
		}
		if json.Unmarshal(result, &r) == nil && r.Status == "error" {
			for _, n := range refusal {
				f.showNotification(f.ctx, c.device, n)
			}
		}
		if why := reason(refusal); err == nil && why != "" {
			err = &failure{http.StatusConflict, promptRefused, why}
		} else if err == nil && r.Status == "error" {
			err = &failure{http.StatusConflict, promptRefused, "no model was asked; the chat says why"}
		}
		done <- outcome{result, err}
	})
	select {
	case o := <-done:
		return o.result, o.err
	case <-time.After(promptPatience):
		return map[string]string{"chatId": id, "model": c.text("model"), "status": "prompting"}, nil
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
}

const promptRefused = "prompt_refused" // an error code of the API

// refuse shows a prompt that is not sent, and the reason, in the device's streams. It returns the error
// for the answer.
func (f api) refuse(c *call, message string, status int, code, why string) (any, error) {
	id := c.path("id")
	content := func(role string, content map[string]any) notification {
		return notification{"chat/contentReceived", encode(map[string]any{"chatId": id, "role": role, "content": content})}
	}
	for _, n := range []notification{
		content("user", map[string]any{"type": "text", "text": message + "\n"}),
		content("system", map[string]any{"type": "text", "text": "\n\n" + why}),
		content("system", map[string]any{"type": "progress", "state": "finished"}),
	} {
		f.showNotification(c.ctx, c.device, n)
	}
	return nil, &failure{status, code, why}
}

// reason returns the reason for a refusal: the texts from the system in its notifications.
func reason(refusal []notification) string {
	var b strings.Builder
	for _, n := range refusal {
		var p struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if json.Unmarshal(n.params, &p) == nil && p.Role == "system" && p.Content.Type == "text" {
			b.WriteString(p.Content.Text)
		}
	}
	return strings.TrimSpace(b.String())
}
