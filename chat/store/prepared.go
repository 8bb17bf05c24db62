package store

import (
	"context"
	"database/sql"
	"errors"
)

// database is an open file with prepared statements for the queries of every turn, because parsing
// a statement takes as long as running it.
type database struct {
	*sql.DB
	version, getMeta, setMeta, setUpdated, addMessages, putEvent, putMessage *sql.Stmt
}

// prepare parses the statements. They are closed with the database.
func prepare(db *sql.DB) (*database, error) {
	out := &database{DB: db}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&out.version, "PRAGMA user_version"},
		{&out.getMeta, `SELECT created_at, updated_at, title, named, model, agent, variant, trust, roots, parent,
			(SELECT max(seq) FROM events WHERE chat = id) FROM chats WHERE id = ?`},
		{&out.setMeta, "UPDATE chats SET updated_at = ?, title = ?, named = ?, model = ?, agent = ?, variant = ?, trust = ? WHERE id = ?"},
		{&out.setUpdated, "UPDATE chats SET updated_at = ? WHERE id = ?"},
		{&out.addMessages, "UPDATE chats SET messages = messages + ? WHERE id = ?"},
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

// transaction is a transaction of a database.
type transaction struct {
	*sql.Tx
	db *database
}

func (d *database) begin(ctx context.Context) (*transaction, error) {
	tx, err := d.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	out := &transaction{tx, d}
	if err := checkCurrent(ctx, out.bind(d.version)); err != nil {
		return nil, errors.Join(err, tx.Rollback())
	}
	return out, nil
}

// checkCurrent checks that the file still has the schema of this program. A newer eca may have
// migrated it since it was opened, and writes in the old schema would damage it.
func checkCurrent(ctx context.Context, version *sql.Stmt) error {
	var v int
	if err := version.QueryRowContext(ctx).Scan(&v); err != nil {
		return err
	}
	if v != schemaVersion {
		return ErrNewer
	}
	return nil
}

// bind returns a prepared statement for use in the transaction, which closes it.
func (t *transaction) bind(stmt *sql.Stmt) *sql.Stmt { return t.Stmt(stmt) }
