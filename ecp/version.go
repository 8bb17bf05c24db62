package ecp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// Versions of the protocol. Agents and runtimes up to 0.4 send none; reports call that
// LegacyVersion.
const (
	ProtocolVersion = "1.0"
	LegacyVersion   = "0.1"
)

var versionForm = pattern.Lazy(`\A(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\z`)

// Version is MAJOR.MINOR. The parts are digits without leading zeros, of any length.
type Version struct{ Major, Minor string }

// ParseVersion reads a version from JSON: a string of the exact form MAJOR.MINOR.
func ParseVersion(raw json.RawMessage) (Version, error) {
	var text string
	if kind(raw) != '"' || json.Unmarshal(raw, &text) != nil {
		return Version{}, fmt.Errorf("protocol_version must be a string like %q", ProtocolVersion)
	}
	parts := versionForm().FindStringSubmatch(text)
	if parts == nil {
		return Version{}, fmt.Errorf("protocol_version must be MAJOR.MINOR like %q, not %.40q", ProtocolVersion, text)
	}
	return Version{Major: parts[1], Minor: parts[2]}, nil
}

func (v Version) String() string { return v.Major + "." + v.Minor }

// Negotiate returns the version that both sides speak: the one with the lower minor version. ok is
// false if the other side has another major version.
func (v Version) Negotiate() (agreed string, ok bool) {
	major, minor, _ := strings.Cut(ProtocolVersion, ".")
	if v.Major != major {
		return "", false
	}
	if cmp.Or(cmp.Compare(len(v.Minor), len(minor)), strings.Compare(v.Minor, minor)) < 0 {
		minor = v.Minor
	}
	return major + "." + minor, true
}

// NegotiateParams returns the version for the result of agent/initialize, based on its params. If the
// params name no version, as in runtimes up to 0.4, it is the agent's own version.
func NegotiateParams(params json.RawMessage) (string, *Error) {
	fields, err := object(params)
	if err != nil {
		return "", Errorf(CodeInvalidParams, "Invalid params: params %v", err)
	}
	raw, ok := fields["protocol_version"]
	if !ok {
		return ProtocolVersion, nil
	}
	requested, err := ParseVersion(raw)
	if err != nil {
		return "", Errorf(CodeInvalidParams, "Invalid params: %v", err)
	}
	agreed, ok := requested.Negotiate()
	if !ok {
		return "", Errorf(CodeVersionUnsupported, "VERSION_UNSUPPORTED: the runtime asks for protocol version %.40s, this agent speaks %s", requested, ProtocolVersion)
	}
	return agreed, nil
}

// Capabilities that protocol 1.0 names. Vendors define others.
const (
	CanReportTools   = "tool_calls"         // step results list the tools that were called
	CanGiveEvidence  = "evaluation_context" // step results have evidence for graders
	CanReportUsage   = "usage"              // step results count tokens
	CanReset         = "reset"              // agent/reset clears the conversation
	CanKeepMultiTurn = "multi_turn"         // a step of a scenario sees the earlier ones
)

// Capabilities are an agent's declared capabilities: one key for each, whose value is an object of
// options.
type Capabilities map[string]json.RawMessage

func parseCapabilities(raw json.RawMessage) (Capabilities, error) {
	fields, err := object(raw)
	if err != nil {
		return nil, fmt.Errorf("capabilities in the result of %s %w", MethodInitialize, err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) { // the same agent gets the same error each time
		options := fields[name]
		switch {
		case name == "":
			return nil, fmt.Errorf("capabilities in the result of %s have an empty name", MethodInitialize)
		case kind(options) != '{':
			return nil, fmt.Errorf("capability %.40q in the result of %s must be an object of options, not %.40s", name, MethodInitialize, options)
		}
	}
	return fields, nil
}
