package search

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// maxBatch is the size of the text, in bytes, at which a transaction ends. Between two transactions,
// other processes can write.
const maxBatch = 4 << 20

// Update updates the index from the store. If ctx is done, it stops; the messages indexed so far stay
// in the index.
func (x *Index) Update(ctx context.Context) error {
	select {
	case x.updating <- struct{}{}:
		defer func() { <-x.updating }()
	case <-ctx.Done():
		return ctx.Err()
	}
	db, source, err := x.open(ctx)
	if err != nil {
		return err
	}
	state, err := source.State(ctx)
	if err != nil {
		return err
	}
	var known string
	err = db.QueryRowContext(ctx, "SELECT state FROM state").Scan(&known)
	if err == nil && known == state {
		return nil
	}
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	complete, err := x.catchUp(ctx, db, source)
	if err != nil || !complete {
		return err
	}
	// If the store has changed in the meantime, its state is different, and the next Update runs again.
	_, err = db.ExecContext(ctx, "DELETE FROM state; INSERT INTO state VALUES (?)", state)
	return err
}

// catchUp indexes the chats that have changed, and removes those that no longer exist. complete is
// false if a chat changed so recently that another change may have the same time.
func (x *Index) catchUp(ctx context.Context, db *sql.DB, source Source) (complete bool, err error) {
	stored, err := source.Updated(ctx)
	if err != nil {
		return false, err
	}
	indexed, err := indexedChats(ctx, db)
	if err != nil {
		return false, err
	}
	removed := false
	for id := range indexed {
		if _, ok := stored[id]; !ok {
			removed = true
			if err := inTx(ctx, db, func(tx *sql.Tx) error { return removeChat(ctx, tx, id) }); err != nil {
				return false, err
			}
		}
	}
	complete = true
	recent := x.opts.Now().Add(-time.Second)
	var changed []string
	for _, id := range slices.Sorted(maps.Keys(stored)) {
		at := stored[id]
		if at.UnixMilli() != indexed[id] {
			changed = append(changed, id)
		}
		complete = complete && at.Before(recent)
	}
	for len(changed) > 0 {
		b := &batch{source: source, workspace: x.opts.Workspace, stored: stored, recent: recent}
		err := inTx(ctx, db, func(tx *sql.Tx) error {
			b.tx = tx
			var err error
			changed, err = b.fill(ctx, changed)
			return err
		})
		if err != nil {
			return false, err
		}
		removed = removed || b.removed
	}
	if removed {
		err = x.shrink(ctx, db)
	}
	return complete, err
}

// shrink removes deleted text from the write-ahead log. While another process is
// reading, it has no effect.
func (x *Index) shrink(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}

// indexedChats returns the chats of the index with the times of their last changes.
func indexedChats(ctx context.Context, db *sql.DB) (map[string]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT id, updated FROM chats")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]int64{}
	for rows.Next() {
		var id string
		var at int64
		if err := rows.Scan(&id, &at); err != nil {
			return nil, err
		}
		out[id] = at
	}
	return out, rows.Err()
}

func inTx(ctx context.Context, db *sql.DB, change func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// removeChat removes a chat from the index.
func removeChat(ctx context.Context, tx *sql.Tx, id string) error {
	if _, err := removeFrom(ctx, tx, id, 0); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "DELETE FROM chats WHERE id = ?", id)
	return err
}

// removeFrom removes the messages of a chat that begin at or after an event.
func removeFrom(ctx context.Context, tx *sql.Tx, id string, from event.Seq) (removed bool, err error) {
	for _, q := range []string{
		"DELETE FROM children WHERE chat = ? AND seq >= ?",
		"DELETE FROM words WHERE rowid IN (SELECT id FROM messages WHERE chat = ? AND seq >= ?)",
		"DELETE FROM messages WHERE chat = ? AND seq >= ?",
	} {
		res, err := tx.ExecContext(ctx, q, id, from)
		if err != nil {
			return false, err
		}
		n, err := res.RowsAffected()
		if err != nil {
			return false, err
		}
		removed = removed || n > 0
	}
	return removed, nil
}

// batch is the set of messages that are added to the index in one transaction.
type batch struct {
	tx        *sql.Tx
	source    Source
	workspace func([]string) string
	stored    map[string]time.Time
	recent    time.Time

	messages []message
	size     int
	removed  bool
}

// fill indexes chats until the transaction is large enough, and returns the remaining chats.
func (b *batch) fill(ctx context.Context, changed []string) (rest []string, err error) {
	const maxChats = 500
	for i, id := range changed {
		if i == maxChats || b.size >= maxBatch {
			return changed[i:], b.write(ctx)
		}
		complete, err := b.chat(ctx, id)
		if err != nil {
			return nil, err
		}
		if !complete {
			return changed[i:], b.write(ctx)
		}
	}
	return nil, b.write(ctx)
}

// chat indexes the new events of a chat. complete is false if they do not all fit into the
// transaction.
func (b *batch) chat(ctx context.Context, id string) (complete bool, err error) {
	meta, _, found, err := b.source.Meta(ctx, id)
	if err != nil {
		return false, err
	}
	if !found {
		return true, removeChat(ctx, b.tx, id)
	}
	var created int64
	next := event.Seq(1)
	err = b.tx.QueryRowContext(ctx, "SELECT created, next FROM chats WHERE id = ?", id).Scan(&created, &next)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	if err == nil && created != meta.Created.UnixMilli() { // another chat with the same id
		next = 1
	}
	r, next, complete, err := b.read(ctx, id, next)
	if err != nil {
		return false, err
	}
	b.messages = append(b.messages, r.messages...)
	b.size += r.size
	for _, c := range r.children {
		if _, err := b.tx.ExecContext(ctx, "INSERT OR REPLACE INTO children (id, chat, seq) VALUES (?, ?, ?)", c.id, c.chat, c.seq); err != nil {
			return false, err
		}
	}
	updated := b.stored[id].UnixMilli()
	if !complete || !b.stored[id].Before(b.recent) {
		updated = 0
	}
	_, err = b.tx.ExecContext(ctx, "INSERT OR REPLACE INTO chats (id, created, updated, next, workspace) VALUES (?, ?, ?, ?, ?)",
		id, meta.Created.UnixMilli(), updated, next, "\n"+b.workspace(meta.Roots)+"\n")
	return complete, err
}

// read reads the events of a chat from sequence number from on. First it removes their messages from
// the index, because an unfinished turn is indexed again each time. If messages were removed from the
// chat, it reads the whole chat.
func (b *batch) read(ctx context.Context, id string, from event.Seq) (r *reader, next event.Seq, complete bool, err error) {
	const page = 256
	r, next = newReader(id), from
	removed, err := removeFrom(ctx, b.tx, id, from)
	if err != nil {
		return nil, 0, false, err
	}
	b.removed = b.removed || removed
	for at := from; ; {
		events, err := b.source.Events(ctx, id, at, page)
		if err != nil {
			return nil, 0, false, err
		}
		for _, e := range events {
			at = e.Seq + 1
			if _, cut := e.Body.(event.Truncated); cut && from > 1 {
				return b.read(ctx, id, 1)
			}
			r.add(e)
			if _, end := e.Body.(event.TurnFinished); !end {
				continue
			}
			if next = at; b.size+r.size >= maxBatch {
				return r, next, false, nil
			}
		}
		if len(events) < page {
			r.finish()
			return r, next, true, nil
		}
	}
}

// write adds the messages of all chats. It adds the oldest first, because that is the fastest order
// for the index.
func (b *batch) write(ctx context.Context) error {
	slices.SortStableFunc(b.messages, func(a, b message) int { return a.at.Compare(b.at) })
	put, err := b.tx.PrepareContext(ctx, "INSERT OR IGNORE INTO messages (id, chat, seq, role, at) VALUES (?, ?, ?, ?, ?)")
	if err != nil {
		return err
	}
	defer put.Close()
	text, err := b.tx.PrepareContext(ctx, "INSERT INTO words (rowid, body) VALUES (?, ?)")
	if err != nil {
		return err
	}
	defer text.Close()
	last := int64(0)
	for _, m := range b.messages {
		id := max(idAt(m.at), last+1)
		for step := int64(1); ; step *= 2 { // for messages with the same time
			res, err := put.ExecContext(ctx, id, m.chat, m.seq, slices.Index(roles(), m.role), m.at.UnixMilli())
			if err != nil {
				return err
			}
			if n, err := res.RowsAffected(); err != nil || n > 0 {
				if err != nil {
					return err
				}
				break
			}
			id += step
		}
		last = id
		if _, err := text.ExecContext(ctx, id, m.text); err != nil {
			return err
		}
	}
	return nil
}

// idAt returns the first id for messages of a time. There are 256 ids per millisecond; further messages
// use the ids of the next milliseconds.
func idAt(t time.Time) int64 { return max(t.UnixMilli(), 0) << 8 }
