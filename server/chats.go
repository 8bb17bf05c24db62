package server

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// chats implement the methods that show and edit chats.
type chats struct {
	*connection
	host     Host
	views    *views
	settings *settings
}

// ChatList implements protocol.Server.
func (cs *chats) ChatList(_ context.Context, req protocol.Request[protocol.ChatListParams]) (protocol.AsyncResult[protocol.ChatListResult], error) {
	by := chat.ByUpdated
	if req.Params.SortBy == "createdAt" {
		by = chat.ByCreated
	}
	return func(ctx context.Context) (protocol.ChatListResult, error) {
		if cs.client().hasPage() || cs.capabilities.Load().Remount {
			cs.settings.pushAgain(cs.ctx)
		}
		list, err := cs.host.Engine().List(ctx, by, int(req.Params.Limit))
		out := protocol.ChatListResult{Chats: make([]protocol.ChatSummary, len(list))}
		for i, c := range list {
			out.Chats[i] = protocol.ChatSummary{
				ID: c.ID, Title: c.Title, Status: "idle", Model: c.Model, MessageCount: c.Messages,
				CreatedAt: c.Created.UnixMilli(), UpdatedAt: c.Updated.UnixMilli(),
			}
			switch {
			case c.Running:
				out.Chats[i].Status = "running"
			case c.InDialog:
				out.Chats[i].Status = "login"
			}
		}
		return out, err
	}, nil
}

// edit runs edits of an existing chat. It is answered after the client has been shown their
// effects. For unknown chats, nothing happens (eca-protocol.md 12).
func (cs *chats) edit(ctx context.Context, id protocol.ID, edits ...func(*chat.Session) *chat.Pending[event.Seq]) (protocol.AsyncResult[protocol.Empty], error) {
	session, ok, err := cs.host.Engine().OpenExisting(ctx, string(id))
	if err != nil || !ok {
		cs.warnOfUnknown(string(id), err)
		return protocol.Immediate(protocol.Empty{}), err
	}
	v := cs.views.get(session)
	pending := make([]*chat.Pending[event.Seq], len(edits))
	for i, edit := range edits {
		pending[i] = edit(session)
	}
	return func(ctx context.Context) (protocol.Empty, error) {
		var shown event.Seq
		var failed error
		for _, p := range pending {
			at, err := p.Wait(ctx)
			shown, failed = max(shown, at), errors.Join(failed, err)
		}
		if failed != nil {
			return protocol.Empty{}, failed
		}
		return protocol.Empty{}, v.showUntil(ctx, shown)
	}, nil
}

// warnOfUnknown logs that a chat does not exist, since clients get the same answer as for others.
func (cs *chats) warnOfUnknown(id string, err error) {
	if err == nil {
		cs.log.Warn("there is no such chat, so nothing was changed", "chat", shorten.Bytes(id, 64))
	}
}

// ChatDelete implements protocol.Server; the notification precedes the answer (eca-protocol.md 4.8).
func (cs *chats) ChatDelete(ctx context.Context, req protocol.Request[protocol.ChatParams]) (protocol.AsyncResult[protocol.Empty], error) {
	id := string(req.Params.ChatID)
	if id == "" || chat.IsSubagent(id) { // a subagent's chat is deleted with its parent
		return protocol.Immediate(protocol.Empty{}), nil
	}
	if known, err := cs.host.Engine().Exists(ctx, id); !known {
		cs.warnOfUnknown(id, err)
	}
	shown := cs.views.beginDelete(id)
	deleted := cs.host.Engine().Delete(id)
	return func(ctx context.Context) (protocol.Empty, error) {
		defer cs.views.endDelete(id)
		err := deleted()
		// If a turn ran, its end must be sent before the notification.
		if shown != nil {
			select {
			case <-shown:
			case <-ctx.Done():
			}
		}
		if err != nil {
			return protocol.Empty{}, err
		}
		cs.notify(cs.ctx, "chat/deleted", protocol.ChatDeleted{ChatID: id})
		cs.news.Announce(chat.ChatDeleted, id)
		return protocol.Empty{}, nil
	}, nil
}

// ChatClear implements protocol.Server.
func (cs *chats) ChatClear(ctx context.Context, req protocol.Request[protocol.ChatClearParams]) (protocol.AsyncResult[protocol.Empty], error) {
	if m := req.Params.Messages.Value; m == nil || !*m {
		return protocol.Immediate(protocol.Empty{}), nil // nothing else can be cleared
	}
	return cs.edit(ctx, req.Params.ChatID, (*chat.Session).Clear)
}

// ChatRollback implements protocol.Server.
func (cs *chats) ChatRollback(ctx context.Context, req protocol.Request[protocol.RollbackParams]) (protocol.AsyncResult[protocol.Empty], error) {
	r := chat.Rollback{ContentID: string(req.Params.ContentID)}
	for _, what := range req.Params.Include {
		r.Messages = r.Messages || what == "messages"
		r.Files = r.Files || what == "tools"
	}
	if len(req.Params.Include) == 0 {
		r.Messages, r.Files = true, true
	}
	return cs.edit(ctx, req.Params.ChatID, func(session *chat.Session) *chat.Pending[event.Seq] { return session.Rollback(r) })
}

// ChatAddFlag implements protocol.Server.
func (cs *chats) ChatAddFlag(ctx context.Context, req protocol.Request[protocol.FlagParams]) (protocol.AsyncResult[protocol.Empty], error) {
	p := req.Params
	return cs.edit(ctx, p.ChatID, func(session *chat.Session) *chat.Pending[event.Seq] {
		return session.AddFlag(string(p.ContentID), string(p.Text))
	})
}

// ChatRemoveFlag implements protocol.Server. The client removes the flag from its view on its own.
func (cs *chats) ChatRemoveFlag(ctx context.Context, req protocol.Request[protocol.FlagParams]) (protocol.AsyncResult[protocol.Empty], error) {
	p := req.Params
	return cs.edit(ctx, p.ChatID, func(session *chat.Session) *chat.Pending[event.Seq] {
		return session.RemoveFlag(string(p.ContentID))
	})
}

// ChatUpdate implements protocol.Server.
func (cs *chats) ChatUpdate(ctx context.Context, req protocol.Request[protocol.ChatUpdateParams]) (protocol.AsyncResult[protocol.Empty], error) {
	p := req.Params
	if trust := p.Trust.Value; trust != nil && cs.client().hasPage() {
		cs.settings.switchTrust(*trust)
	}
	var edits []func(*chat.Session) *chat.Pending[event.Seq]
	if trust := p.Trust.Value; trust != nil {
		edits = append(edits, func(session *chat.Session) *chat.Pending[event.Seq] {
			return session.Change(func(m *chat.Meta) { m.Trust = *trust })
		})
	}
	if pinned := p.Pinned.Value; pinned != nil {
		edits = append(edits, func(session *chat.Session) *chat.Pending[event.Seq] { return session.Pin(*pinned) })
	}
	if p.Title != "" {
		edits = append(edits, func(session *chat.Session) *chat.Pending[event.Seq] { return session.Rename(string(p.Title)) })
	}
	edit, err := cs.edit(ctx, p.ChatID, edits...)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (protocol.Empty, error) {
		res, err := edit(ctx)
		if err == nil {
			cs.news.Announce(chat.ChatChanged, string(p.ChatID))
		}
		return res, err
	}, nil
}

// ChatFork implements protocol.Server.
func (cs *chats) ChatFork(ctx context.Context, req protocol.Request[protocol.ForkParams]) (protocol.AsyncResult[protocol.Empty], error) {
	session, ok, err := cs.host.Engine().OpenExisting(ctx, string(req.Params.ChatID))
	if err != nil || !ok || req.Params.ContentID == "" {
		return protocol.Immediate(protocol.Empty{}), err
	}
	v := cs.views.get(session)
	pending := session.Fork(string(req.Params.ContentID))
	return func(ctx context.Context) (protocol.Empty, error) {
		fork, err := pending.Wait(ctx)
		if err != nil || fork == nil {
			return protocol.Empty{}, err
		}
		at, err := session.Announce(*fork).Wait(ctx) // this shows the fork
		if err != nil {
			return protocol.Empty{}, err
		}
		return protocol.Empty{}, v.showUntil(ctx, at)
	}, nil
}

// ChatOpen implements protocol.Server.
func (cs *chats) ChatOpen(ctx context.Context, req protocol.Request[protocol.WindowParams]) (protocol.AsyncResult[protocol.ChatOpenResult], error) {
	p := req.Params
	session, ok, err := cs.host.Engine().OpenExisting(ctx, string(p.ChatID))
	if err != nil || !ok {
		return protocol.Immediate(protocol.ChatOpenResult{}), err
	}
	v := cs.views.get(session)
	refresh := session.Refresh()
	return func(ctx context.Context) (protocol.ChatOpenResult, error) {
		if _, err := refresh.Wait(ctx); errors.Is(err, chat.ErrNoChat) {
			return protocol.ChatOpenResult{}, nil
		} else if err != nil {
			return protocol.ChatOpenResult{}, err
		}
		span, pageMeta, pageErr := window(ctx, session, p)
		if pageErr != nil {
			return protocol.ChatOpenResult{Error: pageErr}, nil
		}
		if err := v.runAfter(ctx, 0, func(ctx context.Context) error { return v.open(ctx, span) }); err != nil {
			return protocol.ChatOpenResult{}, err
		}
		meta := session.Meta()
		sel := cs.views.selection(meta)
		out := protocol.ChatOpenResult{Found: true, ChatID: meta.ID, Title: meta.Title, Selection: &sel}
		if p.Windowed() {
			out.Meta = pageMeta
		}
		return out, nil
	}, nil
}

// ChatHistory implements protocol.Server.
func (cs *chats) ChatHistory(ctx context.Context, req protocol.Request[protocol.WindowParams]) (protocol.AsyncResult[protocol.ChatHistoryResult], error) {
	p := req.Params
	session, ok, err := cs.host.Engine().OpenExisting(ctx, string(p.ChatID))
	if err != nil {
		return nil, err
	}
	empty := protocol.ChatHistoryResult{Contents: []protocol.ContentReceived{}}
	notFound := empty
	notFound.Error = &protocol.WindowError{Code: "chat_not_found", Message: "there is no chat " + string(p.ChatID)}
	if !ok {
		return protocol.Immediate(notFound), nil
	}
	refresh := session.Refresh()
	return func(ctx context.Context) (protocol.ChatHistoryResult, error) {
		if _, err := refresh.Wait(ctx); errors.Is(err, chat.ErrNoChat) {
			return notFound, nil
		} else if err != nil {
			return empty, err
		}
		span, pageMeta, pageErr := window(ctx, session, p)
		if pageErr != nil {
			empty.Error = pageErr
			return empty, nil
		}
		out := empty
		_, err := replay(ctx, session, span, cs.views.newRenderer(session), cs.log, func(list []notification) {
			for _, n := range list {
				if c, ok := n.Params.(protocol.ContentReceived); ok {
					out.Contents = append(out.Contents, c)
				}
			}
		})
		out.Meta = pageMeta
		return out, err
	}, nil
}

// window selects the messages that a client requests (eca-protocol.md 4.8).
func window(ctx context.Context, session *chat.Session, p protocol.WindowParams) (chat.Span, *protocol.WindowMeta, *protocol.WindowError) {
	fail := func(code, message string) (chat.Span, *protocol.WindowMeta, *protocol.WindowError) {
		return chat.Span{}, nil, &protocol.WindowError{Code: code, Message: message}
	}
	compaction, compacted, err := session.LastCompaction(ctx)
	if err != nil {
		return fail("internal_error", err.Error())
	}
	w := chat.Window{Limit: max(int(p.Limit), 0)}
	for _, c := range []struct {
		text string
		to   **chat.Cursor
	}{{string(p.Before), &w.Before}, {string(p.After), &w.After}} {
		switch {
		case c.text == "":
		case c.text == protocol.LastCompaction && compacted:
			*c.to = &compaction
		case c.text == protocol.LastCompaction && c.to == &w.Before:
			return fail("cursor_expired", "the chat was not compacted")
		case c.text == protocol.LastCompaction: // without a compaction, all messages come after it
		default:
			at, err := chat.ParseCursor(c.text)
			if err != nil {
				return fail("invalid_request", c.text+" is not a cursor")
			}
			*c.to = &at
		}
	}
	// Only a page that continues an earlier page begins with the oldest messages.
	w.Forward = w.After != nil && w.Before == nil && p.After != protocol.LastCompaction
	span, err := session.Window(ctx, w)
	switch {
	case errors.Is(err, chat.ErrCursorExpired):
		return fail("cursor_expired", err.Error())
	case err != nil:
		return fail("internal_error", err.Error())
	}
	meta := windowMeta(span)
	if compacted {
		text := compaction.String()
		meta.CompactionCursor = &text
	}
	return span, meta, nil
}

func windowMeta(span chat.Span) *protocol.WindowMeta {
	out := &protocol.WindowMeta{Total: span.Total, Returned: span.Returned}
	if span.Older {
		first := span.First.String()
		out.BeforeCursor = &first
	}
	if span.Newer {
		last := span.Last.String()
		out.AfterCursor = &last
	}
	return out
}
