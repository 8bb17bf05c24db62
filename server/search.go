package server

import (
	"context"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// ChatSearch implements protocol.Server.
func (cs *chats) ChatSearch(_ context.Context, req protocol.Request[protocol.ChatSearchParams]) (protocol.AsyncResult[protocol.ChatSearchResult], error) {
	if !cs.capabilities.Load().Search {
		return nil, jsonrpc.MethodNotFound("chat/search")
	}
	return func(ctx context.Context) (protocol.ChatSearchResult, error) {
		out := protocol.ChatSearchResult{Results: []protocol.SearchHit{}, Problems: []string{}}
		const waitForIndex = false // the answer says whether it is incomplete
		found, err := cs.host.Search(ctx, string(req.Params.Query), int(req.Params.Limit), waitForIndex)
		if err != nil {
			return out, err
		}
		out.More, out.Incomplete = found.More, found.Incomplete
		out.Problems = append(out.Problems, found.Problems...)
		for _, h := range found.Hits {
			hit := protocol.SearchHit{
				ChatID: h.Chat, Title: h.Title, Workspace: h.Workspace, Role: string(h.Role), CreatedAt: h.At.UnixMilli(),
				Before: h.Before, Subagent: h.Subagent,
			}
			for _, p := range h.Snippet {
				hit.Snippet = append(hit.Snippet, protocol.SnippetPart{Text: p.Text, Match: p.Match})
			}
			out.Results = append(out.Results, hit)
		}
		return out, nil
	}, nil
}
