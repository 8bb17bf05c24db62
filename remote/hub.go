package remote

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// hub is the ECA client that sends the requests of all devices, and that keeps the state outside
// chats.
type hub struct {
	*link
	news *chat.Subscription // announces changes by devices to other clients

	mu      sync.Mutex // guards the fields below
	config  chatConfig
	servers []json.RawMessage // MCP servers, as in tool/serverUpdated
	// promptNotifications collects, by chat, the notifications about prompts whose answers have not
	// arrived yet. If a prompt is refused, they are the only record of it: the log contains nothing.
	promptNotifications map[string][]notification
}

// notification is a notification of the server.
type notification struct {
	method string
	params json.RawMessage
}

// chatConfig is the part of config/updated that is also part of the state outside chats.
type chatConfig struct {
	Models         []string        `json:"models"`
	Agents         []string        `json:"agents"`
	Variants       []string        `json:"variants"`
	SelectModel    string          `json:"selectModel"`
	SelectAgent    string          `json:"selectAgent"`
	SelectVariant  json.RawMessage `json:"selectVariant"`
	WelcomeMessage string          `json:"welcomeMessage"`
}

// newHub connects a hub.
func (f *Face) newHub(ctx context.Context) (*hub, error) {
	h := &hub{promptNotifications: map[string][]notification{}, news: f.opts.Engine.Subscribe(func(chat.News) {})}
	h.link = f.connect(ctx, func(_ context.Context, req *jsonrpc.Request) (any, error) {
		if req.IsCall {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		h.record(req.Method, req.Params)
		return nil, nil
	})
	if err := f.initialize(ctx, h.link, false); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

// close ends the connection.
func (h *hub) close() {
	h.news.Close()
	h.end()
}

// record updates the state from a notification.
func (h *hub) record(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var about struct {
		ChatID string          `json:"chatId"`
		Name   string          `json:"name"`
		Type   string          `json:"type"`
		Chat   json.RawMessage `json:"chat"`
	}
	if json.Unmarshal(params, &about) != nil {
		return
	}
	switch method {
	case "config/updated":
		if about.ChatID == "" && len(about.Chat) > 0 {
			_ = json.Unmarshal(about.Chat, &h.config) // absent keys stay
		}
	case "tool/serverUpdated", "tool/serverRemoved":
		h.servers = slices.DeleteFunc(h.servers, func(raw json.RawMessage) bool {
			var s struct {
				Name string `json:"name"`
			}
			return json.Unmarshal(raw, &s) == nil && s.Name == about.Name
		})
		if method == "tool/serverUpdated" && about.Type == "mcp" {
			h.servers = append(h.servers, params)
		}
	case "chat/contentReceived", "chat/statusChanged":
		if list, waits := h.promptNotifications[about.ChatID]; waits {
			h.promptNotifications[about.ChatID] = append(list, notification{method, params})
		}
	}
}

// prompt sends a prompt. refusal contains the notifications that arrived before the answer; if the
// prompt is refused, they tell the user why.
func (h *hub) prompt(ctx context.Context, chatID string, params any) (result json.RawMessage, refusal []notification, err error) {
	h.mu.Lock()
	h.promptNotifications[chatID] = nil
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		refusal = h.promptNotifications[chatID]
		delete(h.promptNotifications, chatID)
	}()
	err = h.conn.Call(ctx, "chat/prompt", params, &result)
	return result, nil, err
}

// state returns the configuration for chats and the MCP servers.
func (h *hub) state() (chatConfig, []json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.config, slices.Clone(h.servers)
}
