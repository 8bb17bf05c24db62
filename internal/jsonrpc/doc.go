// Package jsonrpc carries JSON-RPC 2.0 over Content-Length frames, the way the
// ECA protocol needs it (eca-protocol contract, sections 1.3, 1.5, 2.1 and 12).
//
// It wraps go.lsp.dev/jsonrpc2, which owns call correlation and dispatch, and
// adds what that module leaves to its user:
//
//   - frame.go: a frame reader that survives anything a peer can send: it caps
//     sizes, never trusts a declared length with memory, finds the next frame
//     after garbage, and answers malformed bodies with -32700 or -32600 instead
//     of dropping the connection;
//   - writer.go: one ordered, bounded queue in front of the pipe; every message is
//     exactly one Write call, and a peer that stopped reading blocks only callers
//     that are willing to wait;
//   - stream.go: what the module reads from and writes to, made of the two;
//   - conn.go: handlers that run in arrival order and may continue concurrently
//     (Later), `$/cancelRequest` in both directions, panics turned into -32603,
//     request ids of our own from 1e9 upward so that they never collide with a
//     client's.
//
// It knows no method names except `$/cancelRequest`.
package jsonrpc
