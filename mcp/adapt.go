package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/client"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// mcp-go's client has a method and types of its own for each thing that is asked; here
// they are reduced to methods and JSON.

// get asks for something that changes nothing and returns the answer as it was sent.
func (c *connection) get(ctx context.Context, method wire.MCPMethod, params any) (json.RawMessage, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var out json.RawMessage
	ctx = keepingRaw(ctx, &out)
	switch method {
	case wire.MethodPromptsList:
		request := wire.ListPromptsRequest{}
		if err = json.Unmarshal(raw, &request.Params); err == nil {
			_, err = c.client.ListPromptsByPage(ctx, request)
		}
	case wire.MethodPromptsGet:
		request := wire.GetPromptRequest{}
		if err = json.Unmarshal(raw, &request.Params); err == nil {
			_, err = c.client.GetPrompt(ctx, request)
		}
	case wire.MethodResourcesList:
		request := wire.ListResourcesRequest{}
		if err = json.Unmarshal(raw, &request.Params); err == nil {
			_, err = c.client.ListResourcesByPage(ctx, request)
		}
	case wire.MethodResourcesRead:
		request := wire.ReadResourceRequest{}
		if err = json.Unmarshal(raw, &request.Params); err == nil {
			_, err = c.client.ReadResource(ctx, request)
		}
	default:
		err = fmt.Errorf("internal error: eca does not ask for %s", method)
	}
	return out, err
}

// tellServer notifies the server of something without parameters.
func (c *connection) tellServer(ctx context.Context, method string) error {
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = method
	return c.link.SendNotification(ctx, n)
}

// has says what the server said it has.
func (c *connection) has() wire.ServerCapabilities { return c.client.GetServerCapabilities() }

// answers has mcp-go's client answer what the server asks.
func (c *connection) answers() []client.ClientOption {
	raw, _ := json.Marshal(c.asks.capabilities()) // they are texts and truth values
	var said wire.ClientCapabilities
	_ = json.Unmarshal(raw, &said)
	options := []client.ClientOption{client.WithClientCapabilities(said)}
	if said.Roots != nil {
		options = append(options, client.WithRootsHandler(asker{c}))
	}
	return options
}

// asker is mcp-go's handlers for a connection.
type asker struct{ c *connection }

// ListRoots implements client.RootsHandler.
func (a asker) ListRoots(ctx context.Context, _ wire.ListRootsRequest) (*wire.ListRootsResult, error) {
	return handled[wire.ListRootsResult](ctx, a.c, wire.MethodListRoots, nil)
}

// handled has a request answered.
func handled[R any](ctx context.Context, c *connection, method wire.MCPMethod, params any) (*R, error) {
	handle := c.asks.handlers()[string(method)]
	if handle == nil {
		return nil, fmt.Errorf("eca does not know the method %s", method)
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	result, err := handle(ctx, ServerRequest{Server: c.name, Method: string(method), Params: raw, Calls: c.activeCalls()})
	if err != nil {
		return nil, err
	}
	if raw, err = json.Marshal(result); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	out := new(R)
	return out, json.Unmarshal(raw, out)
}
