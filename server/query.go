package server

import (
	"cmp"
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Offers provides the completions that clients offer while the user types.
type Offers interface {
	// Roots are the workspace folders.
	Roots() []string
	// FindFiles returns the files that match what a user types, best first (see workspace.Finder).
	FindFiles(ctx context.Context, roots []string, query string) ([]workspace.Found, error)
	// MCPResources lists the resources of MCP servers that match a query.
	MCPResources(query string) []mcp.Resource
	// Commands lists the slash commands.
	Commands() []command.Offer
	Inline() *inline.Engine
}

// queries implement the methods that answer from Offers.
type queries struct{ host Offers }

// ChatQueryContext implements protocol.Server: it offers contexts that the client has not chosen
// yet (eca-protocol.md 4.7). Contexts that are not files are offered whatever the query is, after
// the files whose names match it.
func (q *queries) ChatQueryContext(_ context.Context, req protocol.Request[protocol.QueryContextParams]) (protocol.AsyncResult[protocol.QueryContextResult], error) {
	p, roots := req.Params, q.host.Roots()
	return func(ctx context.Context) (protocol.QueryContextResult, error) {
		found, err := q.host.FindFiles(ctx, roots, string(p.Query))
		named, others := splitByName(found, string(p.Query))
		items := append(contextItems(named), protocol.ContextItem{Type: "repoMap"}, protocol.ContextItem{Type: "cursor"})
		for _, root := range roots {
			items = append(items, protocol.ContextItem{Type: "directory", Path: root})
		}
		items = append(items, contextItems(others)...)
		items = append(items, q.resourceItems(string(p.Query))...)
		offered := map[protocol.ContextItem]bool{}
		for _, c := range p.Contexts {
			if c.LinesRange == nil { // even with a range, the whole file can still be chosen
				offered[contextItemOf(c, roots)] = true
			}
		}
		items = slices.DeleteFunc(items, func(i protocol.ContextItem) bool {
			identity := protocol.ContextItem{Type: i.Type, Path: i.Path, URI: i.URI, Server: i.Server} // the other fields are for the user
			alreadyOffered := offered[identity]
			offered[identity] = true
			return alreadyOffered
		})
		return protocol.QueryContextResult{ChatID: chatRef(p.ChatID), Contexts: items}, err
	}, nil
}

// splitByName splits the results. Files whose name equals the query or begins with it come before all
// others.
func splitByName(found []workspace.Found, query string) (named, others []workspace.Found) {
	name := strings.ToLower(path.Base(filepath.ToSlash(strings.TrimSpace(query))))
	if query == "" || strings.HasSuffix(query, "/") {
		return nil, found
	}
	for _, f := range found {
		if strings.HasPrefix(strings.ToLower(filepath.Base(f.Path)), name) {
			named = append(named, f)
		} else {
			others = append(others, f)
		}
	}
	return named, others
}

// contextItemOf returns a context that the client has chosen, in the form in which it would be offered.
func contextItemOf(c protocol.ChatContext, roots []string) protocol.ContextItem {
	i := protocol.ContextItem{Type: c.Type}
	if c.Path != "" && (c.Type == "file" || c.Type == "directory") {
		i.Path = workspace.Abs(roots, c.Path)
	}
	if c.Type == "mcpResource" {
		i.URI, i.Server = cmp.Or(c.URI, c.URL), c.Server
	}
	return i
}

// maxResources is how many resources of MCP servers are offered; it is the same as for files.
const maxResources = 100

// resourceItems returns the resources of MCP servers that match a query.
func (q *queries) resourceItems(query string) []protocol.ContextItem {
	var out []protocol.ContextItem
	for _, r := range q.host.MCPResources(query) {
		if len(out) == maxResources {
			break
		}
		out = append(out, protocol.ContextItem{
			Type: "mcpResource", URI: r.URI, Name: r.Name, Description: shortDescription(r.Description), MimeType: r.MediaType, Server: r.Server,
		})
	}
	return out
}

// ChatQueryFiles implements protocol.Server.
func (q *queries) ChatQueryFiles(_ context.Context, req protocol.Request[protocol.QueryParams]) (protocol.AsyncResult[protocol.QueryFilesResult], error) {
	p, roots := req.Params, q.host.Roots()
	return func(ctx context.Context) (protocol.QueryFilesResult, error) {
		found, err := q.host.FindFiles(ctx, roots, string(p.Query))
		return protocol.QueryFilesResult{ChatID: chatRef(p.ChatID), Files: contextItems(found)}, err
	}, nil
}

func contextItems(found []workspace.Found) []protocol.ContextItem {
	out := make([]protocol.ContextItem, len(found))
	for i, f := range found {
		out[i] = protocol.ContextItem{Type: "file", Path: f.Path}
		if f.Dir {
			out[i].Type = "directory"
		}
	}
	return out
}

// chatRef returns the chat id for the answer to a query.
func chatRef(id protocol.ID) *string {
	if id == "" {
		return nil
	}
	s := string(id)
	return &s
}
