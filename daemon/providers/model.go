package providers

import (
	"errors"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// Model is a usable model with what is known about it. It is for programs without chats, and
// converts to chat.Model.
type Model struct {
	ID             string // provider/model
	Spelled        string // ID, with the provider's name as the user's files spell it
	Name           string // the provider's name for it
	Client         llm.Model
	Reasoning      bool
	NoImages       bool                      // it does not accept images
	NoTools        bool                      // it cannot call tools
	ServerTools    llm.ServerTools           // the provider's tools that the model may use
	Headers        map[string]string         // extraHeaders
	Extra          map[string]any            // extraPayload; null removes a key from the request
	Variants       map[string]map[string]any // by name
	Limit          config.Limit
	Cost           config.Cost
	Impossible     string                // see chat.Model
	ReadsReasoning func(api string) bool // see chat.Model
	Retry          llm.RetryPolicy       // see chat.Model
}

// Resolver finds models by their names.
type Resolver interface {
	// Resolve finds a model as chat.Models.Resolve does.
	Resolve(name, current string) (Model, error)
}

// ErrNoModel is returned by Resolve when no model can be used at all.
var ErrNoModel = errors.New("No available model found. Configure at least one provider model.") //nolint:staticcheck,revive // the wording clients show (eca-protocol.md 4.1)
