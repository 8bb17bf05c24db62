package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// greet shakes hands in the way that servers of all versions but the newest understand. A
// version, if there is one, is what eca says it speaks.
func (s *session) greet(ctx context.Context, version string) (*wire.InitializeResult, error) {
	var info wire.InitializeResult
	err := s.call(ctx, string(wire.MethodInitialize), map[string]any{
		"protocolVersion": cmp.Or(version, wire.LATEST_LEGACY_PROTOCOL_VERSION), "capabilities": s.self.capabilities, "clientInfo": s.self.info,
	}, &info)
	if err != nil {
		return nil, s.causeOr(err)
	}
	if !slices.Contains(wire.LegacyProtocolVersions(), info.ProtocolVersion) {
		return nil, fmt.Errorf("the server speaks version %q of the protocol, which eca does not know", cut(info.ProtocolVersion, 50))
	}
	s.agree(info.ProtocolVersion)
	if err := s.notify(ctx, string(wire.MethodNotificationInitialized), nil); err != nil {
		return nil, s.causeOr(err)
	}
	s.listening = s.transport.listen()
	return &info, nil
}

// greetModern is for servers that refuse that: they speak a version without a handshake, in
// which each request says what the handshake said.
func (s *session) greetModern(ctx context.Context) (*wire.InitializeResult, error) {
	const version = wire.ProtocolVersion20260728
	s.agree(version)
	var found struct {
		wire.DiscoverResult
		Server *wire.Implementation `json:"serverInfo"` // where drafts had it
	}
	err := s.call(ctx, string(wire.MethodServerDiscover), nil, &found)
	if offers(err, version) {
		err = s.call(ctx, string(wire.MethodServerDiscover), nil, &found)
	}
	if err != nil {
		return nil, s.causeOr(err)
	}
	if versions := found.SupportedVersions; len(versions) > 0 && !slices.Contains(versions, version) {
		return nil, fmt.Errorf("the server speaks versions %q of the protocol, which eca does not know", versions[:min(len(versions), 5)])
	}
	info := &wire.InitializeResult{ProtocolVersion: version, Capabilities: found.Capabilities, Instructions: found.Instructions}
	if server := found.GetResultMeta().ServerInfo(); server != nil {
		info.ServerInfo = *server
	} else if found.Server != nil {
		info.ServerInfo = *found.Server
	}
	return info, nil
}

// offers says whether a server that refused the version of a request names it among those
// that it speaks.
func offers(err error, version string) bool {
	var answer *answerError
	if !errors.As(err, &answer) || answer.details.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return false
	}
	raw, err := json.Marshal(answer.details.Data)
	if err != nil {
		return false
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	return json.Unmarshal(raw, &data) == nil && slices.Contains(data.Supported, version)
}

// settle waits until what the server says unasked is heard: servers may ask there what they
// need for their first answer. Some do not say that they heard us, so it is not waited for
// long.
func (s *session) settle(ctx context.Context) {
	if s.listening == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	select {
	case <-s.listening:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

const settleTime = time.Second

// subscribe asks a server without a handshake for its notifications, again and again: the
// answer comes when it stops telling.
func (s *session) subscribe(after func(time.Duration) (<-chan time.Time, func())) {
	filter := map[string]any{"notifications": wire.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}}
	s.background(func() {
		for {
			err := s.call(s.ctx, string(wire.MethodSubscriptionsListen), filter, nil)
			if answered(err) {
				return // it has nothing to tell
			}
			again, giveUp := after(listenAgain)
			select {
			case <-again:
			case <-s.ctx.Done():
				giveUp()
				return
			}
		}
	})
}

// listenAgain is how long to wait before notifications are asked for again.
const listenAgain = 5 * time.Second
