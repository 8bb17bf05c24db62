package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"
)

// link stands between mcp-go's client and a transport and adds what both lack: requests of
// the server are bounded and end when it cancels them, a request over HTTP that nobody waits
// for any more is cancelled at the server, and results are kept as they were sent where the
// client's types would lose something.
type link struct {
	transport.Interface
	ctx context.Context

	mu       sync.Mutex // guards what follows
	incoming map[string]context.CancelFunc
}

func newLink(ctx context.Context, t transport.Interface) *link {
	return &link{Interface: t, ctx: ctx, incoming: map[string]context.CancelFunc{}}
}

// transport returns what the client is given: it looks for methods that only some have.
func (l *link) transport() transport.Interface {
	if _, ok := l.Interface.(transport.HTTPConnection); ok {
		return httpLink{l}
	}
	return l
}

// rawKey is for the place where SendRequest leaves a result as it was sent.
type rawKey struct{}

// keepingRaw has a request's last result left in raw.
func keepingRaw(ctx context.Context, raw *json.RawMessage) context.Context {
	return context.WithValue(ctx, rawKey{}, raw)
}

// SendRequest implements transport.Interface.
func (l *link) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := l.Interface.SendRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if response == nil {
		return nil, fmt.Errorf("%s was not answered", r.Method)
	}
	if response.Error == nil && r.Method == string(wire.MethodToolsCall) {
		response.Result = withContent(response.Result)
	}
	if raw, ok := ctx.Value(rawKey{}).(*json.RawMessage); ok {
		*raw = response.Result
	}
	return response, nil
}

// withContent gives a result that has structured content only the list that the client
// insists on.
func withContent(result json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(result, &members) != nil || members == nil {
		return result
	}
	if content := members["content"]; len(content) > 0 && string(content) != "null" || members["resultType"] != nil {
		return result
	}
	members["content"] = json.RawMessage("[]")
	out, err := json.Marshal(members)
	if err != nil {
		return result
	}
	return out
}

// maxIncoming bounds the requests of a server that are answered at the same time.
const maxIncoming = 16

// SetRequestHandler implements transport.BidirectionalInterface where the transport does.
func (l *link) SetRequestHandler(handle transport.RequestHandler) {
	both, ok := l.Interface.(transport.BidirectionalInterface)
	if !ok {
		return
	}
	both.SetRequestHandler(func(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stop := context.AfterFunc(l.ctx, cancel)
		defer stop()
		id := r.ID.String()
		l.mu.Lock()
		if len(l.incoming) >= maxIncoming {
			l.mu.Unlock()
			return nil, fmt.Errorf("more than %d requests at a time", maxIncoming)
		}
		l.incoming[id] = cancel
		l.mu.Unlock()
		defer func() {
			l.mu.Lock()
			delete(l.incoming, id)
			l.mu.Unlock()
		}()
		return handle(ctx, r)
	})
}

// cancelled ends a request of the server that it cancelled.
func (l *link) cancelled(id any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cancel := l.incoming[wire.NewRequestId(id).String()]; cancel != nil {
		cancel()
	}
}

// httpLink is a link over HTTP.
type httpLink struct{ *link }

// SetProtocolVersion implements transport.HTTPConnection.
func (l httpLink) SetProtocolVersion(version string) {
	l.Interface.(transport.HTTPConnection).SetProtocolVersion(version)
}

// RequiresLegacyProtocol passes on whether the transport does.
func (l httpLink) RequiresLegacyProtocol() bool {
	t, ok := l.Interface.(interface{ RequiresLegacyProtocol() bool })
	return ok && t.RequiresLegacyProtocol()
}

// SendRequest implements transport.Interface. The end of an HTTP request says nothing to
// servers with a handshake; a notification does.
func (l httpLink) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	response, err := l.link.SendRequest(ctx, r)
	if err == nil || ctx.Err() == nil || r.Method == string(wire.MethodInitialize) || l.ctx.Err() != nil {
		return response, err
	}
	n := wire.JSONRPCNotification{JSONRPC: wire.JSONRPC_VERSION}
	n.Method = string(wire.MethodNotificationCancelled)
	n.Params.AdditionalFields = map[string]any{"requestId": r.ID, "reason": context.Cause(ctx).Error()}
	go func() { // who waited is gone
		ctx, cancel := context.WithTimeout(l.ctx, pingTime)
		defer cancel()
		_ = l.SendNotification(ctx, n) // best effort
	}()
	return response, err
}
