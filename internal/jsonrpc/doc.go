// Package jsonrpc is the core of all JSON-RPC 2.0 connections: those of editors (eca-protocol.md,
// sections 1.3, 1.5, 2.1 and 12), and those of ACP, MCP, A2A and ECP.
//
//   - message.go: reading and writing messages and batches, with errors that a peer can act on;
//   - pending.go: our calls that wait for an answer, and the peer's calls that are being answered;
//   - frame.go: codecs, which frame messages in a stream. The one for editors survives any input:
//     it caps sizes, does not allocate memory for a declared length, finds the next frame after
//     garbage, and answers malformed bodies with -32700 or -32600 instead of dropping the
//     connection;
//   - writer.go: one ordered, bounded queue before the pipe; every message is
//     exactly one Write call, and a peer that stopped reading blocks only callers
//     that are willing to wait;
//   - conn.go: a connection made of these, for editors and ACP: handlers that run in arrival order
//     and may continue concurrently (Later, Deferred), cancellation in both directions, panics
//     turned into -32603.
//
// The other protocols use the messages and pending calls of this package, but not Conn: MCP has
// sessions over several transports, A2A has one call per HTTP request, and ECP answers calls one
// after the other, in their order.
//
// Package scanner uses the scanner of go.lsp.dev/jsonrpc2, but not that module's connection: it
// disconnects a peer because of one unreadable message, accepts only editors' ids, and does not
// notify peers of cancelled calls.
//
// The package knows no method names except that of the notification that cancels a call.
package jsonrpc
