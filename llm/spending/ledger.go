// Package spending records the usage of requests to models in a file that all eca processes of the
// user share: of each minute and model, and of each chat.
//
// Adding usage never waits for the file. Usage that cannot be written stays in memory, and is
// counted in this process. The package knows no limits: chat/budget compares the usage of chats with
// them.
//
// Entry point: New.
package spending

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/workspace"
)

// File is the name of the file in eca's state folder.
const File = "spending.db"

// retention is how long the usage of a minute is kept, and the usage of a chat after its last change.
const retention = 62 * 24 * time.Hour

// Usage is the usage of requests.
type Usage struct {
	config.Amount
	Requests int
	Priced   int // requests with a known price
}

// UsageOf returns the usage of one request.
func UsageOf(used llm.Usage, cost config.Cost) Usage {
	u := Usage{Amount: config.Amount{Tokens: used.Total()}, Requests: 1}
	if price, known := llm.Price(cost, used); known {
		u.Cost, u.Priced = price, 1
	}
	return u
}

// Plus returns the sum.
func (u Usage) Plus(v Usage) Usage {
	return Usage{Amount: u.Amount.Plus(v.Amount), Requests: u.Requests + v.Requests, Priced: u.Priced + v.Priced}
}

// slot is the key of usage: a minute and a model. The time of turns is counted under an empty model.
type slot struct {
	minute int64 // since 1970
	model  string
}

// batch is usage that has not been written to the file.
type batch struct {
	slots map[slot]Usage
	chats map[string]config.Amount
}

func newBatch() batch { return batch{map[slot]Usage{}, map[string]config.Amount{}} }

func (b batch) empty() bool { return len(b.slots) == 0 && len(b.chats) == 0 }

func (b batch) merge(more batch) {
	for at, u := range more.slots {
		b.slots[at] = b.slots[at].Plus(u)
	}
	for chat, a := range more.chats {
		b.chats[chat] = b.chats[chat].Plus(a)
	}
}

// Ledger is the file with the usage of all eca processes of the user. It is safe for concurrent use.
type Ledger struct {
	log *slog.Logger
	now func() time.Time

	fileToken chan struct{} // capacity 1; full while the file is opened, written or read
	work      sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	dir     string
	pending batch
	queued  bool // a goroutine that will write pending has been started
	closing bool // no more goroutines are started

	// The fields below are owned by the holder of the token.
	db      *sql.DB
	lastErr error // error of the last write
	closed  bool
}

// New returns a ledger with its file in eca's state folder. Close must be called.
func New(dir string, now func() time.Time, log *slog.Logger) *Ledger {
	return &Ledger{dir: dir, now: now, log: log, fileToken: make(chan struct{}, 1), pending: newBatch()}
}

// Add adds usage, which a goroutine then writes to the file.
func (l *Ledger) Add(chat, model string, u Usage) {
	b := newBatch()
	b.slots[slot{l.now().Unix() / 60, model}] = u
	if chat != "" {
		b.chats[chat] = u.Amount
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.merge(b)
	if !l.queued && !l.closing {
		l.queued = true
		l.work.Go(func() { _ = l.flushThen(context.Background(), func(*sql.DB) error { return nil }) })
	}
}

const schema = `
CREATE TABLE IF NOT EXISTS spent (
  minute   INTEGER NOT NULL, -- since 1970
  model    TEXT NOT NULL,    -- empty: the time of turns
  requests INTEGER NOT NULL,
  priced   INTEGER NOT NULL, -- requests with a known price
  tokens   INTEGER NOT NULL,
  cost     REAL NOT NULL,    -- in dollars
  millis   INTEGER NOT NULL,
  PRIMARY KEY (minute, model)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chats (
  chat    TEXT PRIMARY KEY,
  changed INTEGER NOT NULL,  -- minutes since 1970
  budget  TEXT NOT NULL,     -- JSON; empty: as configured
  tokens  INTEGER NOT NULL,
  cost    REAL NOT NULL,
  millis  INTEGER NOT NULL
) WITHOUT ROWID;
`

// open opens the file. The caller holds the token.
func (l *Ledger) open(ctx context.Context) error {
	if l.closed {
		return errors.New("the spending file is closed")
	}
	if l.db != nil {
		return nil
	}
	path := l.Path()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// Without WAL several processes can create the file at the same time.
	db, err := sql.Open("sqlite", workspace.ToURI(path)+"?_pragma=busy_timeout(2000)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-500)&_txlock=immediate")
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, schema)
		for _, old := range []string{"DELETE FROM spent WHERE minute < ?", "DELETE FROM chats WHERE changed < ?"} {
			if err == nil {
				_, err = tx.ExecContext(ctx, old, l.now().Add(-retention).Unix()/60)
			}
		}
		err = errors.Join(err, finish(tx, err))
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	_ = os.Chmod(path, 0o600)
	l.db = db
	return nil
}

// Path returns the path of the file.
func (l *Ledger) Path() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return filepath.Join(l.dir, File)
}

// finish commits a transaction, or rolls it back after an error.
func finish(tx *sql.Tx, err error) error {
	if err != nil {
		return tx.Rollback()
	}
	return tx.Commit()
}

// acquire waits for the token.
func (l *Ledger) acquire(ctx context.Context) (release func(), err error) {
	select {
	case l.fileToken <- struct{}{}:
		return func() { <-l.fileToken }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// flushThen writes the pending usage and then calls read. The error is nil only if the file has all
// usage that was added before.
func (l *Ledger) flushThen(ctx context.Context, read func(*sql.DB) error) error {
	release, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	l.mu.Lock()
	batch := l.pending
	l.pending, l.queued = newBatch(), false
	l.mu.Unlock()
	err = explain(l.Path(), l.write(ctx, batch))
	if err != nil {
		l.mu.Lock()
		l.pending.merge(batch)
		l.mu.Unlock()
		if l.lastErr == nil && ctx.Err() == nil {
			l.log.Warn("cannot write the spending file; other eca processes of the user do not count the missing part", "file", File, "err", err)
		}
	}
	if ctx.Err() == nil {
		l.lastErr = err
	}
	if err != nil {
		return err
	}
	return explain(l.Path(), read(l.db))
}

// explain names the file and what to do about an error of the file.
func explain(path string, err error) error {
	if safeio.SQLiteCode(err) == 0 {
		return err
	}
	if safeio.DatabaseDamaged(err) {
		return fmt.Errorf("%s is damaged; move it away: eca then creates a new file, without the earlier spending", path)
	}
	return fmt.Errorf("%s: %w; `eca doctor` checks whether its folder can be written", path, err)
}

// write writes a batch. The caller holds the token.
func (l *Ledger) write(ctx context.Context, b batch) error {
	if err := l.open(ctx); err != nil || b.empty() {
		return err
	}
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for at, u := range b.slots {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO spent (minute, model, requests, priced, tokens, cost, millis) VALUES (?, ?, ?, ?, ?, ?, ?)
				ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, priced = priced + excluded.priced,
				tokens = tokens + excluded.tokens, cost = cost + excluded.cost, millis = millis + excluded.millis`,
				at.minute, at.model, u.Requests, u.Priced, u.Tokens, u.Cost, u.Time.Milliseconds())
		}
	}
	for chat, a := range b.chats {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO chats (chat, changed, budget, tokens, cost, millis) VALUES (?, ?, '', ?, ?, ?)
				ON CONFLICT DO UPDATE SET changed = excluded.changed, tokens = tokens + excluded.tokens, cost = cost + excluded.cost, millis = millis + excluded.millis`,
				chat, l.now().Unix()/60, a.Tokens, a.Cost, a.Time.Milliseconds())
		}
	}
	return errors.Join(err, finish(tx, err))
}

// Since returns the usage of each model since a time. If it returns an error, the usage
// includes only what this process has not written yet.
func (l *Ledger) Since(ctx context.Context, from time.Time) (map[string]Usage, error) {
	out := map[string]Usage{}
	err := l.flushThen(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT model, sum(requests), sum(priced), sum(tokens), sum(cost), sum(millis) FROM spent WHERE minute >= ? GROUP BY model", from.Unix()/60)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var model string
			var u Usage
			var millis int64
			if err := rows.Scan(&model, &u.Requests, &u.Priced, &u.Tokens, &u.Cost, &millis); err != nil {
				return err
			}
			u.Time = time.Duration(millis) * time.Millisecond
			out[model] = u
		}
		return rows.Err()
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	for at, u := range l.pending.slots {
		if at.minute >= from.Unix()/60 {
			out[at.model] = out[at.model].Plus(u)
		}
	}
	return out, err
}

// OwnLimits are the limits that /budget set for a chat, by scope. The configured limits apply to
// missing scopes.
type OwnLimits map[string][]string

// Chat returns the usage of a chat.
func (l *Ledger) Chat(ctx context.Context, id string) (a config.Amount, err error) {
	err = l.flushThen(ctx, func(db *sql.DB) error {
		var millis int64
		err := db.QueryRowContext(ctx, "SELECT tokens, cost, millis FROM chats WHERE chat = ?", id).Scan(&a.Tokens, &a.Cost, &millis)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		a.Time = time.Duration(millis) * time.Millisecond
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	return a.Plus(l.pending.chats[id]), err
}

// Limits returns a chat's own limits. It does not write pending usage or create the file, because
// requests wait for it and most chats do not have limits.
func (l *Ledger) Limits(ctx context.Context, id string) (own OwnLimits, err error) {
	release, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if l.db == nil {
		if _, err := os.Stat(l.Path()); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	var text string
	err = l.db.QueryRowContext(ctx, "SELECT budget FROM chats WHERE chat = ?", id).Scan(&text)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && text == "":
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal([]byte(text), &own); err != nil {
		return nil, fmt.Errorf("read the chat's own budget: %w", err)
	}
	return own, nil
}

// SetLimits stores a chat's own limits.
func (l *Ledger) SetLimits(ctx context.Context, id string, own OwnLimits) error {
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return l.flushThen(ctx, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, `INSERT INTO chats (chat, changed, budget, tokens, cost, millis) VALUES (?, ?, ?, 0, 0, 0)
			ON CONFLICT DO UPDATE SET changed = excluded.changed, budget = excluded.budget`, id, l.now().Unix()/60, string(text))
		return err
	})
}

// Forget removes a chat. Its usage stays in the sums of days.
func (l *Ledger) Forget(ctx context.Context, id string) error {
	return l.flushThen(ctx, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "DELETE FROM chats WHERE chat = ?", id)
		return err
	})
}

// Move sets the folder of a ledger that has not been used yet.
func (l *Ledger) Move(dir string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dir = dir
}

// Close writes the pending usage and closes the file.
func (l *Ledger) Close() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.work.Wait()
	l.mu.Lock()
	unwritten := !l.pending.empty()
	l.mu.Unlock()
	if unwritten {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = l.flushThen(ctx, func(*sql.DB) error { return nil }) // flushThen logs errors
		cancel()
	}
	l.fileToken <- struct{}{}
	defer func() { <-l.fileToken }()
	l.closed = true
	if l.db != nil {
		_ = l.db.Close()
		l.db = nil
	}
}
