package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// olderHandshake performs the older handshake (initialize). version, if set, is the version that eca offers.
func (s *session) olderHandshake(ctx context.Context, version string) (*wire.InitializeResult, error) {
	info, err := s.initialize(ctx, version)
	if err != nil {
		return nil, err
	}
	return info, s.completeHandshake(ctx, info)
}

// initialize sends the request of the older handshake.
func (s *session) initialize(ctx context.Context, version string) (*wire.InitializeResult, error) {
	var info wire.InitializeResult
	err := s.call(ctx, string(wire.MethodInitialize), map[string]any{
		"protocolVersion": cmp.Or(version, wire.LATEST_LEGACY_PROTOCOL_VERSION), "capabilities": s.self.capabilities, "clientInfo": s.self.info,
	}, &info)
	if err != nil {
		return nil, s.causeOr(err)
	}
	if v := info.ProtocolVersion; !slices.Contains(wire.LegacyProtocolVersions(), v) && v != newestVersion {
		return nil, &versionError{[]string{v}}
	}
	return &info, nil
}

// completeHandshake completes the older handshake. eca uses the version that the server names, even if it is
// newer than the version that eca offered.
func (s *session) completeHandshake(ctx context.Context, info *wire.InitializeResult) error {
	s.setVersion(info.ProtocolVersion)
	if err := s.notify(ctx, string(wire.MethodNotificationInitialized), nil); err != nil {
		return s.causeOr(err)
	}
	s.listening = s.transport.listen()
	return nil
}

// newestVersion is the version without a handshake: each request contains the data that earlier
// versions exchanged in the handshake.
const newestVersion = wire.ProtocolVersion20260728

// versionError means that a server supports only versions that eca does not support.
type versionError struct{ versions []string }

func (e *versionError) Error() string {
	var names []string
	for _, v := range e.versions[:min(len(e.versions), 5)] {
		names = append(names, strconv.Quote(shorten.Bytes(v, 50)))
	}
	return "the server uses protocol version " + strings.Join(names, ", ") + ", which eca does not support"
}

// discover requests the description of a server of the newest version. If the answer lists no
// versions, discover returns it together with errNoVersions, because it may come from an older server
// that answers every request. sent, if not nil, is called when the request has been sent.
func (s *session) discover(ctx context.Context, sent func()) (*wire.InitializeResult, error) {
	s.transport.setVersion(newestVersion)
	var found struct {
		wire.DiscoverResult
		Server *wire.Implementation `json:"serverInfo"` // where drafts of the version have it
	}
	request := request{method: string(wire.MethodServerDiscover), version: newestVersion, onSent: sent}
	raw, err := s.ask(ctx, request)
	if versions := supportedVersions(err); slices.Contains(versions, newestVersion) {
		raw, err = s.ask(ctx, request)
	} else if len(versions) > 0 {
		return nil, &versionError{versions}
	}
	if err == nil {
		err = decode(raw, &found)
	}
	if err != nil {
		return nil, s.causeOr(err)
	}
	if versions := found.SupportedVersions; len(versions) > 0 && !slices.Contains(versions, newestVersion) {
		return nil, &versionError{versions}
	}
	info := &wire.InitializeResult{ProtocolVersion: newestVersion, Capabilities: found.Capabilities, Instructions: found.Instructions}
	if server := found.GetResultMeta().ServerInfo(); server != nil {
		info.ServerInfo = *server
	} else if found.Server != nil {
		info.ServerInfo = *found.Server
	}
	if len(found.SupportedVersions) == 0 {
		return info, errNoVersions
	}
	return info, nil
}

var errNoVersions = errors.New("the server does not list its protocol versions")

// supportedVersions returns the versions that a server listed when it refused the version of a request. It
// returns nil for other errors.
func supportedVersions(err error) []string {
	var answer *answerError
	if !errors.As(err, &answer) || answer.details.Code != wire.UNSUPPORTED_PROTOCOL_VERSION {
		return nil
	}
	var data struct {
		Supported []string `json:"supported"`
	}
	if json.Unmarshal(answer.details.Data, &data) != nil {
		return nil
	}
	return data.Supported
}

// awaitStream waits until the stream for unsolicited messages is open, since servers may use it to
// request data that they need for their first answer. The wait is short because some servers never
// confirm the stream.
func (s *session) awaitStream(ctx context.Context) {
	if s.listening == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, streamWait)
	defer cancel()
	select {
	case <-s.listening:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

const streamWait = time.Second

// subscribe requests the notifications of a server without a handshake. The server answers this
// request only when it stops sending notifications, so subscribe then requests them again.
func (s *session) subscribe(after func(time.Duration) (<-chan time.Time, func())) {
	filter := map[string]any{"notifications": wire.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true}}
	s.background(func() {
		for {
			err := s.call(s.ctx, string(wire.MethodSubscriptionsListen), filter, nil)
			if answered(err) {
				return // it has no notifications
			}
			due, giveUp := after(resubscribeDelay)
			select {
			case <-due:
			case <-s.ctx.Done():
				giveUp()
				return
			}
		}
	})
}

// resubscribeDelay is the wait before the next subscription.
const resubscribeDelay = 5 * time.Second
