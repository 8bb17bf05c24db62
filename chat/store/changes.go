package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// State returns a fingerprint that differs after a chat is added, removed or appended to.
func (s *Store) State(ctx context.Context) (string, error) {
	db, err := s.openToRead()
	if err != nil {
		return "", err
	}
	var state string
	err = db.QueryRowContext(ctx, "SELECT concat(count(*), ' ', sum(updated_at), ' ', sum(messages)) FROM chats").Scan(&state)
	if err != nil {
		return "", fmt.Errorf("read chats: %w", s.explain(err))
	}
	return state, nil
}

// Updated returns the time of the last change of each chat, including those of subagents.
func (s *Store) Updated(ctx context.Context) (map[string]time.Time, error) {
	db, err := s.openToRead()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT id, updated_at FROM chats")
	if err != nil {
		return nil, fmt.Errorf("read chats: %w", s.explain(err))
	}
	defer rows.Close()
	out := map[string]time.Time{}
	for rows.Next() {
		var id string
		var at int64
		if err := rows.Scan(&id, &at); err != nil {
			return nil, fmt.Errorf("read chats: %w", s.explain(err))
		}
		out[id] = time.UnixMilli(at).UTC()
	}
	return out, s.explain(rows.Err())
}

// MessageAfter returns the first message that begins after an event; ok is false if the event
// belongs to the last message.
func (s *Store) MessageAfter(ctx context.Context, id string, seq event.Seq) (at chat.Cursor, ok bool, err error) {
	db, err := s.openToRead()
	if err != nil {
		return at, false, err
	}
	err = db.QueryRowContext(ctx, "SELECT place, seq FROM messages WHERE chat = ? AND place > ? ORDER BY place, seq LIMIT 1", id, seq).Scan(&at.Anchor, &at.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return at, false, nil
	}
	if err != nil {
		return at, false, fmt.Errorf("read chat %s: %w", id, s.explain(err))
	}
	return at, true, nil
}

// WorkspaceKey returns the key of a set of folders: their paths with symlinks resolved, sorted,
// one per line. All worktrees of a repository have the same key.
func WorkspaceKey(roots []string) string { return workspaceKey(roots) }
