package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/workspace"
)

// editorClient returns the requests that the client's editor supports: only those that it announced
// (eca-protocol, section 6).
func (s *Server) editorClient(can protocol.Capabilities) editor.Client {
	var c editor.Client
	if can.Diagnostics {
		c.Diagnostics = s.editorDiagnostics
	}
	if can.Definition {
		c.Definition = func(ctx context.Context, at editor.Position) ([]editor.Position, error) {
			return s.editorLocations(ctx, "editor/getDefinition", navigation(at))
		}
	}
	if can.References {
		c.References = func(ctx context.Context, at editor.Position, declaration bool) ([]editor.Position, error) {
			params := navigation(at)
			params.IncludeDeclaration = &declaration
			return s.editorLocations(ctx, "editor/getReferences", params)
		}
	}
	return c
}

func (s *Server) editorDiagnostics(ctx context.Context, path string) ([]editor.Diagnostic, error) {
	var params protocol.DiagnosticsParams
	if path != "" {
		params.URI = workspace.ToURI(path)
	}
	var res protocol.DiagnosticsResult
	if err := s.request(ctx, "editor/getDiagnostics", params, &res); err != nil {
		return nil, err
	}
	if err := failure(res.Outcome); err != nil {
		return nil, err
	}
	var out []editor.Diagnostic
	for _, d := range res.Diagnostics {
		at := editor.Position{Path: workspace.FromURI(string(d.URI))}
		if r := d.Range.Value; r != nil {
			at.Line, at.Character = int(r.Start.Line)+1, int(r.Start.Character)+1
		}
		out = append(out, editor.Diagnostic{
			At: at, Severity: severity(d.Severity), Message: string(d.Message), Source: string(d.Source), Code: string(d.Code),
		})
	}
	return out, nil
}

func severity(s protocol.Severity) editor.Severity {
	for known := editor.Error; known < editor.Unknown; known++ {
		if known.String() == string(s) {
			return known
		}
	}
	return editor.Unknown
}

func navigation(at editor.Position) protocol.NavigationParams {
	return protocol.NavigationParams{
		URI:      workspace.ToURI(at.Path),
		Position: protocol.Position{Line: protocol.Number(at.Line), Character: protocol.Number(at.Character)},
	}
}

func (s *Server) editorLocations(ctx context.Context, method string, params protocol.NavigationParams) ([]editor.Position, error) {
	var res protocol.NavigationResult
	if err := s.request(ctx, method, params, &res); err != nil {
		return nil, err
	}
	if err := failure(res.Outcome); err != nil {
		return nil, err
	}
	var out []editor.Position
	for _, l := range res.Locations {
		if l.URI == "" || l.Range.Value == nil {
			continue
		}
		start := l.Range.Value.Start
		out = append(out, editor.Position{Path: workspace.FromURI(string(l.URI)), Line: int(start.Line), Character: int(start.Character)})
	}
	return out, nil
}

// failure returns the error that a result reports, or nil.
func failure(o protocol.Outcome) error {
	why := string(o.Message)
	switch strings.ReplaceAll(strings.ToLower(string(o.Status)), "_", "-") {
	case "starting":
		return editor.ErrStarting
	case "no-server":
		if why == "" {
			why = "no language server runs for this file"
		}
	case "error":
		if why == "" {
			why = "the client failed without saying why"
		}
	default:
		return nil
	}
	return errors.New(why)
}

var errUnreachable = errors.New("cannot reach the client")

// request calls the client and reads its answer. An error says in plain words why there is no
// answer; it wraps a *jsonrpc.Error if the client sent an error object.
func (s *Server) request(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	err := s.conn.Call(ctx, method, params, &raw)
	var refused *jsonrpc.Error
	switch {
	case err == nil && (len(raw) == 0 || string(raw) == "null"):
		return errors.New("the client gave no answer")
	case err == nil:
		if err := protocol.Decode(raw, result); err != nil {
			s.log.Warn("answer of the client unreadable", "method", method, "err", err)
			return errors.New("cannot read the client's answer")
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound:
		return fmt.Errorf("the client does not know %s: %w", method, refused)
	case errors.As(err, &refused):
		return fmt.Errorf("the client failed: %w", refused)
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}
