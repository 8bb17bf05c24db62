// Package ecp contains the wire types of the Evaluation Context Protocol, which packages agent and
// runtime share.
//
// It owns the forms of the three methods and of their JSON-RPC envelope, and the rules for reading
// the other side's messages (docs/contracts/ecp.md, sections 1.1 to 1.3). It guarantees that
// accepted messages follow those rules, that keys are matched by their exact names, that unknown
// keys of results survive, and that Encode writes one line of ASCII. It does not read or write
// streams, and does not depend on a transport.
//
// In comments of this package and of those below it, "the reference" is the reference implementation
// of the protocol (docs/ecp-defects.md).
package ecp

// The methods. The runtime calls them; the agent calls nothing.
const (
	MethodInitialize = "agent/initialize"
	MethodStep       = "agent/step"
	MethodReset      = "agent/reset"
)

// Endpoint is the path that agents serve over HTTP by convention.
const Endpoint = "/ecp"

// TimeoutVariable names the environment variable with the limit of one call in seconds. An agent
// inherits it from its runtime and may end a step early to stay within the limit.
const TimeoutVariable = "ECP_RPC_TIMEOUT"

// Status of a step (docs/contracts/ecp.md 1.2).
type Status string

// Done means that the step is complete, Paused that it stopped early or waits for more input.
const (
	Done   Status = "done"
	Paused Status = "paused"
)
