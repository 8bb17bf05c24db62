package remote

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// hub is the client that sends what the devices do, and that knows the state outside chats.
type hub struct {
	*link
	news *chat.Subscription // tells other clients what devices change

	mu      sync.Mutex // guards the fields below
	config  chatConfig
	servers []json.RawMessage // MCP servers, as the protocol has them
	// The notifications for prompts that wait for their answer, by chat: the log has nothing of a
	// prompt that is refused.
	shown map[string][]notification
}

// notification is a message of the server.
type notification struct {
	method string
	params json.RawMessage
}

// chatConfig is the part of config/updated that the session's state has.
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
	h := &hub{shown: map[string][]notification{}, news: f.opts.Engine.Subscribe(func(chat.News) {})}
	h.link = f.connect(ctx, func(_ context.Context, req *jsonrpc.Request) (any, error) {
		if req.IsCall {
			return nil, jsonrpc.MethodNotFound(req.Method)
		}
		h.take(req.Method, req.Params)
		return nil, nil
	})
	if err := f.introduce(ctx, h.link, false); err != nil {
		h.leave()
		return nil, err
	}
	return h, nil
}

// leave ends the connection.
func (h *hub) leave() {
	h.news.Close()
	h.end()
}

// take notes what a notification says.
func (h *hub) take(method string, params json.RawMessage) {
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
		if list, waits := h.shown[about.ChatID]; waits {
			h.shown[about.ChatID] = append(list, notification{method, params})
		}
	}
}

// prompt sends a prompt. If it is refused, refusal is what the user is shown.
func (h *hub) prompt(ctx context.Context, chatID string, params any) (result json.RawMessage, refusal []notification, err error) {
	h.mu.Lock()
	h.shown[chatID] = nil
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		refusal = h.shown[chatID]
		delete(h.shown, chatID)
	}()
	err = h.conn.Call(ctx, "chat/prompt", params, &result)
	return result, nil, err
}

// state returns what is known outside chats.
func (h *hub) state() (chatConfig, []json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.config, slices.Clone(h.servers)
}
