package store

import (
	"context"
	"fmt"
	"time"
)

// Pin implements chat.Store.
func (s *Store) Pin(ctx context.Context, id string, on bool) error {
	return s.write(ctx, "pin chat "+id, func(tx *transaction) error {
		change := "DELETE FROM pins WHERE chat = ?"
		if on {
			change = "INSERT OR IGNORE INTO pins (chat) SELECT id FROM chats WHERE id = ?"
		}
		_, err := tx.Exec(change, id)
		return err
	})
}

// Pinned reports whether a chat is pinned.
func (s *Store) Pinned(ctx context.Context, id string) (bool, error) {
	db, err := s.openToRead()
	if err != nil {
		return false, err
	}
	return exists(ctx, db, "SELECT 1 FROM pins WHERE chat = ?", id)
}

// Subagents returns the chats of a chat's subagents.
func (s *Store) Subagents(ctx context.Context, id string) ([]string, error) {
	return queryIDs(ctx, s, "list subagents", "SELECT id FROM chats WHERE parent = ? AND parent <> ''", id)
}

// Expired returns the chats that are not pinned and have not changed since a time. A change in
// the chat of a subagent counts as a change of its parent.
func (s *Store) Expired(ctx context.Context, before time.Time) ([]string, error) {
	return queryIDs(ctx, s, "list old chats", `SELECT id FROM chats c WHERE parent = '' AND updated_at < ?1 AND id NOT IN (SELECT chat FROM pins)
		AND NOT EXISTS (SELECT 1 FROM chats s WHERE s.parent = c.id AND s.parent <> '' AND s.updated_at >= ?1) ORDER BY updated_at`, millis(before))
}

// queryIDs returns the ids that a query finds. Errors begin with what, a description of the query.
func queryIDs(ctx context.Context, s *Store, what, query string, args ...any) (out []string, err error) {
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, s.explain(err))
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, fmt.Errorf("%s: %w", what, s.explain(err))
		}
		out = append(out, id)
	}
	return out, s.explain(rows.Err())
}

// Shrink empties the write-ahead log, which may still contain deleted text. While another process is
// reading, it has no effect.
func (s *Store) Shrink(ctx context.Context) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return s.explain(err)
}

// ChatCounts are the numbers of all chats and of the pinned chats.
type ChatCounts struct{ Chats, Pinned int }

// CountChats counts the chats in the store, without those of subagents.
func (s *Store) CountChats(ctx context.Context) (counts ChatCounts, err error) {
	db, err := s.openToRead()
	if err != nil {
		return counts, err
	}
	err = db.QueryRowContext(ctx, "SELECT (SELECT count(*) FROM chats WHERE parent = ''), (SELECT count(*) FROM pins)").Scan(&counts.Chats, &counts.Pinned)
	return counts, s.explain(err)
}
