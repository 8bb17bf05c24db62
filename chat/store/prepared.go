package store

import (
	"context"
	"database/sql"
)

// database is an open file with the statements that every turn runs: parsing them took as
// long as running them.
type database struct {
	*sql.DB
	getMeta, setMeta, touch, count, putEvent, putMessage *sql.Stmt
}

// prepare parses the statements. They are closed with the database.
func prepare(db *sql.DB) (*database, error) {
	out := &database{DB: db}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&out.getMeta, `SELECT created_at, updated_at, title, named, model, agent, variant, trust, roots, parent,
			(SELECT max(seq) FROM events WHERE chat = id) FROM chats WHERE id = ?`},
		{&out.setMeta, "UPDATE chats SET updated_at = ?, title = ?, named = ?, model = ?, agent = ?, variant = ?, trust = ? WHERE id = ?"},
		{&out.touch, "UPDATE chats SET updated_at = ? WHERE id = ?"},
		{&out.count, "UPDATE chats SET messages = messages + ? WHERE id = ?"},
		{&out.putEvent, "INSERT INTO events (chat, seq, turn, at, kind, version, body) VALUES (?, ?, ?, ?, ?, ?, ?)"},
		{&out.putMessage, "INSERT INTO messages (chat, place, seq, name) VALUES (?, ?, ?, ?)"},
	} {
		stmt, err := db.Prepare(s.text)
		if err != nil {
			return nil, err
		}
		*s.stmt = stmt
	}
	return out, nil
}

// transaction is one of a database.
type transaction struct {
	*sql.Tx
	db *database
}

func (d *database) begin(ctx context.Context) (*transaction, error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &transaction{tx, d}, nil
}

// of returns a prepared statement as part of the transaction, which closes it.
func (t *transaction) of(stmt *sql.Stmt) *sql.Stmt { return t.Stmt(stmt) }
