package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Imported reports whether MarkImported or Import has marked a source. Marks outlive the chats,
// so that chats the user deleted are not imported again.
func (s *Store) Imported(ctx context.Context, source string) (bool, error) {
	db, err := s.openToRead()
	if err != nil {
		return false, err
	}
	return exists(ctx, db, "SELECT 1 FROM imports WHERE source = ?", source)
}

// MarkImported marks a source; marking it again changes nothing.
func (s *Store) MarkImported(ctx context.Context, source string) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	return markImported(ctx, db, source)
}

// Import adds a chat and marks its source in one transaction. If the source is already marked,
// or a chat with that id exists, it adds no chat but still marks the source.
func (s *Store) Import(ctx context.Context, source string, meta chat.Meta, events []event.Event) (added bool, err error) {
	err = s.write(ctx, "import chat "+meta.ID, func(tx *transaction) error {
		known, err := exists(ctx, tx, "SELECT 1 FROM imports WHERE source = ? UNION ALL SELECT 1 FROM chats WHERE id = ?", source, meta.ID)
		if err != nil {
			return err
		}
		if !known {
			added = true
			if err := putMeta(tx, meta); err != nil {
				return err
			}
			if err := putEvents(tx, meta.ID, events); err != nil {
				return err
			}
		}
		return markImported(ctx, tx, source)
	})
	return added && err == nil, err
}

// querier is a database or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func markImported(ctx context.Context, db querier, source string) error {
	_, err := db.ExecContext(ctx, "INSERT OR IGNORE INTO imports (source, at) VALUES (?, unixepoch('subsec') * 1000)", source)
	if err != nil {
		return fmt.Errorf("mark %s as imported: %w", source, err)
	}
	return nil
}

func exists(ctx context.Context, db querier, query string, args ...any) (bool, error) {
	var one int
	switch err := db.QueryRowContext(ctx, query, args...).Scan(&one); {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}
