// Package scanner reads editors' messages like jsonrpc.DecodeEditor, but in one pass and without a
// copy, because prompts may include images.
//
// It is not part of package jsonrpc, so that programs without editors do not need the scanner
// module.
package scanner

import (
	"go.lsp.dev/jsonrpc2"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Decode reads a message. It leaves all but plain calls and notifications to jsonrpc.DecodeEditor.
func Decode(body []byte) (jsonrpc.Message, *jsonrpc.Error) {
	view, err := jsonrpc2.ScanMessageView(body)
	if err != nil || len(view.MethodRaw) <= len(`""`) {
		return jsonrpc.DecodeEditor(body)
	}
	method, ok := view.MethodString()
	if !ok {
		return jsonrpc.DecodeEditor(body)
	}
	m := jsonrpc.Message{JSONRPC: "2.0", Method: method, Params: view.Params}
	if view.Kind == jsonrpc2.MessageViewCall {
		m.ID = view.IDRaw
	}
	return m, nil
}
