package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Chat is a chat without its events.
type Chat struct {
	chat.Meta
	Prompts  int    // number of user messages
	Commands int    // number of user messages that are slash commands, which the model never gets
	First    string // beginning of the first message that is not a command; may be empty
}

// Chats returns the chats of a workspace, or all chats if roots is empty, the most recently
// updated first. It leaves out the chats of subagents.
func (s *Store) Chats(ctx context.Context, roots []string) ([]Chat, error) {
	db, err := s.openToRead()
	if err != nil {
		return nil, err
	}
	kind := string(event.KindOf(event.UserMessage{}))
	rows, err := db.QueryContext(ctx, `SELECT id, created_at, updated_at, title, named, model, agent, variant, trust, roots,
		(SELECT count(*) FROM messages m JOIN events e ON e.chat = m.chat AND e.seq = m.seq WHERE m.chat = id AND e.kind = ?),
		(SELECT count(*) FROM messages m JOIN events e ON e.chat = m.chat AND e.seq = m.seq WHERE m.chat = id AND e.kind = ? AND json_extract(e.body, '$.command')),
		coalesce((SELECT substr(json_extract(e.body, '$.text'), 1, 200) FROM messages m JOIN events e ON e.chat = m.chat AND e.seq = m.seq WHERE m.chat = id AND e.kind = ? AND json_extract(e.body, '$.command') IS NULL ORDER BY e.seq LIMIT 1), '')
		FROM chats WHERE (? OR workspace IN (?, ?)) AND parent = '' ORDER BY updated_at DESC, id`,
		kind, kind, kind, len(roots) == 0, workspaceKey(roots), folderKey(roots))
	if err != nil {
		return nil, fmt.Errorf("list chats: %w", s.explain(err))
	}
	defer rows.Close()
	var out []Chat
	for rows.Next() {
		var c Chat
		var created, updated int64
		var roots string
		if err := rows.Scan(&c.ID, &created, &updated, &c.Title, &c.Named, &c.Model, &c.Agent, &c.Variant, &c.Trust, &roots, &c.Prompts, &c.Commands, &c.First); err != nil {
			return nil, fmt.Errorf("list chats: %w", s.explain(err))
		}
		c.Created, c.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
		if err := json.Unmarshal([]byte(roots), &c.Roots); err != nil {
			return nil, fmt.Errorf("roots of chat %s: %w", c.ID, err)
		}
		out = append(out, c)
	}
	return out, s.explain(rows.Err())
}

// SameWorkspace reports whether two sets of folders are the same workspace.
func SameWorkspace(a, b []string) bool { return workspaceKey(a) == workspaceKey(b) }
