package store

import (
	"context"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Cut implements chat.Store.
func (s *Store) Cut(ctx context.Context, meta chat.Meta, from event.Seq, marker event.Event) error {
	return s.write(ctx, "cut chat "+meta.ID, func(tx *transaction) error { return cut(tx, meta, from, marker) })
}

// Adopt implements chat.Store.
func (s *Store) Adopt(ctx context.Context, meta chat.Meta, other string, end event.Seq, marker event.Event) error {
	return s.write(ctx, "copy chat "+other+" to chat "+meta.ID, func(tx *transaction) error {
		if err := cut(tx, meta, 1, marker); err != nil {
			return err
		}
		return copyEvents(tx, other, meta.ID, end, marker.Seq)
	})
}

func cut(tx *transaction, meta chat.Meta, from event.Seq, marker event.Event) error {
	// Keep flags that are positioned before the cut although their sequence numbers are greater.
	_, err := tx.Exec(`DELETE FROM events WHERE chat = ?1 AND seq >= ?2 AND NOT (kind = ?3
		AND seq IN (SELECT seq FROM messages WHERE chat = ?1 AND place < ?2))`, meta.ID, from, string(event.KindFlag))
	if err != nil {
		return err
	}
	if _, err := tx.Exec("DELETE FROM messages WHERE chat = ? AND place >= ?", meta.ID, from); err != nil {
		return err
	}
	if err := putMeta(tx, meta); err != nil {
		return err
	}
	if err := recount(tx, meta.ID); err != nil {
		return err
	}
	return putEvents(tx, meta.ID, []event.Event{marker})
}

// RemoveFlag implements chat.Store.
func (s *Store) RemoveFlag(ctx context.Context, id string, flag event.Seq) error {
	return s.write(ctx, "remove a flag from chat "+id, func(tx *transaction) error {
		if _, err := tx.Exec("DELETE FROM events WHERE chat = ? AND seq = ? AND kind = ?", id, flag, string(event.KindFlag)); err != nil {
			return err
		}
		if _, err := tx.Exec("DELETE FROM messages WHERE chat = ? AND seq = ? AND seq <> place", id, flag); err != nil {
			return err
		}
		return recount(tx, id)
	})
}

// Copy implements chat.Store.
func (s *Store) Copy(ctx context.Context, from string, to chat.Meta, end, shift event.Seq) error {
	return s.write(ctx, "copy chat "+from, func(tx *transaction) error {
		if err := putMeta(tx, to); err != nil {
			return err
		}
		return copyEvents(tx, from, to.ID, end, shift)
	})
}

func copyEvents(tx *transaction, from, to string, end, shift event.Seq) error {
	// A flag may be positioned before the end although its sequence number is greater.
	_, err := tx.Exec(`INSERT INTO events (chat, seq, turn, at, kind, version, body)
		SELECT ?1, seq + ?4, turn, at, kind, version,
		       CASE kind WHEN ?5 THEN CAST(json_set(body, '$.after', json_extract(body, '$.after') + ?4) AS BLOB) ELSE body END
		FROM events WHERE chat = ?2 AND (kind <> ?5 AND seq < ?3
		  OR kind = ?5 AND seq IN (SELECT seq FROM messages WHERE chat = ?2 AND place < ?3))`,
		to, from, end, shift, string(event.KindFlag))
	if err != nil {
		return err
	}
	_, err = tx.Exec("INSERT INTO messages (chat, place, seq, name) SELECT ?1, place + ?4, seq + ?4, name FROM messages WHERE chat = ?2 AND place < ?3",
		to, from, end, shift)
	if err != nil {
		return err
	}
	return recount(tx, to)
}

func recount(tx *transaction, id string) error {
	_, err := tx.Exec("UPDATE chats SET messages = (SELECT count(*) FROM messages WHERE chat = ?1) WHERE id = ?1", id)
	return err
}
