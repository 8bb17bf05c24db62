package server

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/workspace"
)

// editorRequests sends the requests of tools to the client's editor.
type editorRequests struct{ *connection }

// client returns the requests that the client's editor supports: only those that it announced
// (eca-protocol.md, section 6).
func (e editorRequests) client(can protocol.Capabilities) editor.Client {
	var c editor.Client
	if can.Diagnostics {
		c.Diagnostics = e.diagnostics
	}
	if can.Definition {
		c.Definition = func(ctx context.Context, at tools.Position) ([]tools.Position, error) {
			return e.locations(ctx, "editor/getDefinition", navigation(at))
		}
	}
	if can.References {
		c.References = func(ctx context.Context, at tools.Position, declaration bool) ([]tools.Position, error) {
			params := navigation(at)
			params.IncludeDeclaration = &declaration
			return e.locations(ctx, "editor/getReferences", params)
		}
	}
	return c
}

func (e editorRequests) diagnostics(ctx context.Context, path string) ([]tools.Diagnostic, error) {
	var params protocol.DiagnosticsParams
	if path != "" {
		params.URI = workspace.ToURI(path)
	}
	var res protocol.DiagnosticsResult
	if err := e.request(ctx, "editor/getDiagnostics", params, &res); err != nil {
		return nil, err
	}
	if err := failure(res.Outcome); err != nil {
		return nil, err
	}
	var out []tools.Diagnostic
	for _, d := range res.Diagnostics {
		at := tools.Position{Path: workspace.FromURI(string(d.URI))}
		if r := d.Range.Value; r != nil {
			at.Line, at.Character = int(r.Start.Line)+1, int(r.Start.Character)+1
		}
		out = append(out, tools.Diagnostic{
			At: at, Severity: severity(d.Severity), Message: string(d.Message), Source: string(d.Source), Code: string(d.Code),
		})
	}
	return out, nil
}

func severity(s protocol.Severity) tools.Severity {
	for known := tools.Error; known < tools.Unknown; known++ {
		if known.String() == string(s) {
			return known
		}
	}
	return tools.Unknown
}

func navigation(at tools.Position) protocol.NavigationParams {
	return protocol.NavigationParams{
		URI:      workspace.ToURI(at.Path),
		Position: protocol.Position{Line: protocol.Number(at.Line), Character: protocol.Number(at.Character)},
	}
}

func (e editorRequests) locations(ctx context.Context, method string, params protocol.NavigationParams) ([]tools.Position, error) {
	var res protocol.NavigationResult
	if err := e.request(ctx, method, params, &res); err != nil {
		return nil, err
	}
	if err := failure(res.Outcome); err != nil {
		return nil, err
	}
	var out []tools.Position
	for _, l := range res.Locations {
		if l.URI == "" || l.Range.Value == nil {
			continue
		}
		start := l.Range.Value.Start
		out = append(out, tools.Position{Path: workspace.FromURI(string(l.URI)), Line: int(start.Line), Character: int(start.Character)})
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
			why = "the client failed without an error message"
		}
	default:
		return nil
	}
	return errors.New(why)
}
