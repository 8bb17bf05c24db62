package server

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
)

// numberedChat finds a chatId that is a number, or a number in quotes.
var numberedChat = regexp.MustCompile(`"chat(?:Id|-id)"\s*:\s*"?-?[0-9.]+"?\s*[,}]`)

// resolveChat replaces a numeric chatId by the id of a chat. One client sends the number of its
// tab, which is the same in every session and every project. Such a number means a chat of this
// connection and never a stored one. A number in quotes is taken as an id, unless the connection
// has a chat for it.
func (s *Server) resolveChat(params json.RawMessage) json.RawMessage {
	if !numberedChat.Match(params) {
		return params
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(params, &fields) != nil || len(fields["chatId"]) == 0 {
		return params // decoding the params reports the error
	}
	number, quoted := strings.CutPrefix(string(fields["chatId"]), `"`)
	number = strings.TrimSuffix(number, `"`)
	s.mu.Lock()
	id, known := s.numbered[number]
	if !known && !quoted {
		id = s.newID()
		s.numbered[number] = id
	}
	s.mu.Unlock()
	if id == "" {
		return params
	}
	fields["chatId"], _ = json.Marshal(id)
	resolved, err := json.Marshal(fields)
	if err != nil {
		return params
	}
	return resolved
}

// workspaceOf returns the folders of a chat that belongs to another workspace and that the client
// was not shown: a prompt for it must be a mistake. It returns nil for all other chats.
func (s *Server) workspaceOf(ctx context.Context, session *chat.Session) ([]string, error) {
	s.mu.Lock()
	_, shown := s.views[session.ID()]
	s.mu.Unlock()
	roots, here := session.Meta().Roots, s.host.Roots()
	if shown || len(roots) == 0 || slices.ContainsFunc(roots, func(root string) bool { return slices.Contains(here, root) }) {
		return nil, nil
	}
	list, err := s.host.Engine().List(ctx, chat.ByUpdated, 0)
	if err != nil || slices.ContainsFunc(list, func(c chat.Summary) bool { return c.ID == session.ID() }) {
		return nil, err
	}
	return roots, nil
}
