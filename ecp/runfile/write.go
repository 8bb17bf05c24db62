// Package runfile keeps the attempts and results of one run in an SQLite file, from which pages can
// be read without reading the whole file.
//
// Guarantees: results can be read while the run adds others; if the process is killed, additions
// that are older than a fifth of a second survive, and the run can be continued; only one Writer at
// a time has a file open; the size of a page, and of a Writer for a new run, is bounded, regardless
// of the number of results. The package stores the contents of reports, and only computes the
// values by which pages are sorted and filtered. It refuses files of other versions. It does not
// render reports.
package runfile

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Extension is the extension of run files.
const Extension = ".ecprun"

// version is the version of the schema. application is the SQLite application ID of run files, "ecpr".
const (
	version     = 3
	application = 0x65637072
)

// schema creates the tables. The place of a result is its index in the plan; the id of an attempt
// contains that of its result, see attemptID. Attempts are added before their result. The documents
// are in separate tables, so that resuming a run and summing it up do not read them. sums has what
// a tally needs in one column, because each column costs time when millions of results are read.
const schema = `
CREATE TABLE run(doc TEXT NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL, unpriced INTEGER NOT NULL);
CREATE TABLE variant(id INTEGER PRIMARY KEY, name TEXT NOT NULL, key TEXT NOT NULL, labels TEXT NOT NULL);
CREATE TABLE task(id INTEGER PRIMARY KEY, place INTEGER NOT NULL, key TEXT NOT NULL UNIQUE, name TEXT NOT NULL, n INTEGER NOT NULL, passed INTEGER NOT NULL, rate REAL NOT NULL, cost REAL NOT NULL, ms INTEGER NOT NULL);
CREATE TABLE result(
	id INTEGER PRIMARY KEY, place INTEGER NOT NULL, task INTEGER NOT NULL, variant INTEGER NOT NULL,
	status TEXT NOT NULL, kind TEXT NOT NULL, why TEXT NOT NULL, n INTEGER NOT NULL, passed INTEGER NOT NULL, cost REAL NOT NULL, ms INTEGER NOT NULL, ci95 TEXT NOT NULL,
	attempts INTEGER NOT NULL, aliases TEXT NOT NULL, sums BLOB NOT NULL);
CREATE TABLE result_doc(id INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE attempt(id INTEGER PRIMARY KEY, key BLOB NOT NULL, agent INTEGER NOT NULL, stopped INTEGER NOT NULL, status TEXT NOT NULL);
CREATE TABLE attempt_doc(id INTEGER PRIMARY KEY, doc TEXT NOT NULL);
CREATE INDEX result_task ON result(task, variant);
CREATE INDEX result_place ON result(place);
CREATE INDEX result_unpassed ON result(place) WHERE status <> 'passed';
CREATE INDEX result_failed ON result(status, kind, task) WHERE status <> 'passed';
CREATE INDEX result_flaky ON result(task) WHERE passed > 0 AND passed < n;
CREATE INDEX task_place ON task(place, id);
CREATE INDEX task_rate ON task(rate, id);
CREATE INDEX task_cost ON task(-cost, id);
CREATE INDEX task_ms ON task(-ms, id);
CREATE INDEX task_name ON task(name, id);`

// The statements of a Writer.
const (
	insertAttempt    = "INSERT OR REPLACE INTO attempt VALUES (?,?,?,?,?)"
	insertAttemptDoc = "INSERT OR REPLACE INTO attempt_doc VALUES (?,?)"
	insertResult     = "INSERT OR REPLACE INTO result VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	insertResultDoc  = "INSERT OR REPLACE INTO result_doc VALUES (?,?)"
	addToTask        = `INSERT INTO task(place, key, name, n, passed, rate, cost, ms) VALUES (?1,?2,?3,?4,?5,CAST(?5 AS REAL)/MAX(?4,1),?6,?7) ON CONFLICT(key) DO UPDATE SET
	place = MIN(place, ?1), name = ?3, n = n + ?4, passed = passed + ?5, rate = CAST(passed + ?5 AS REAL)/MAX(n + ?4, 1), cost = cost + ?6, ms = ms + ?7 RETURNING id`
	takeFromTask = `UPDATE task SET (n, passed, rate, cost, ms) = (SELECT task.n - r.n, task.passed - r.passed, CAST(task.passed - r.passed AS REAL)/MAX(task.n - r.n, 1), task.cost - r.cost, task.ms - r.ms FROM result r WHERE r.id = ?1)
	WHERE id = (SELECT task FROM result WHERE id = ?1)`
	insertVariant = "INSERT INTO variant VALUES (?,?,?,?)"
)

// variant is a column of the grid.
type variant struct {
	Name, Key string
}

// Write writes a report as a run file. It replaces an existing file only when the new one is complete.
func Write(path string, r *report.Report) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".ecprun-")
	if err != nil {
		return fmt.Errorf("write the run file %s: %w", path, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	unfinished := filepath.Join(dir, "run")
	if err := write(unfinished, r); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return fmt.Errorf("write the run file %s: %w", path, err)
	}
	return nil
}

func write(path string, r *report.Report) error {
	w, err := Create(path, r)
	if err != nil {
		return err
	}
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		key := placeKey(i)
		attempts := s.AllAttempts()
		for n := range attempts {
			err = errors.Join(err, w.Attempt(key, n+1, 0, attempts[n], false))
		}
		if err = errors.Join(err, w.Result(key, i, s)); err != nil {
			return errors.Join(err, w.Close(r))
		}
	}
	return w.Close(r)
}

// open opens a database with a single connection, which bounds its memory.
func open(path, mode string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	if !strings.HasPrefix(uri.Path, "/") {
		uri.Path = "/" + uri.Path // a drive letter
	}
	cache := 8000 // in KB
	if mode == "ro" {
		cache *= 2 // a page of 2,000 results from all parts of a large file fits in
	}
	db, err := sql.Open("sqlite", fmt.Sprintf("%s?mode=%s&_pragma=cache_size(-%d)", uri.String(), mode, cache)+"&_pragma=busy_timeout(5000)&_pragma=trusted_schema(0)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// A transaction ends after this many additions, or after this time.
const (
	maxPending = 5000
	maxDelay   = 200 * time.Millisecond
)

// Writer adds attempts and results to a run file as they come. Its methods may be called from several
// goroutines. Keys identify a case, its variant, and everything that determines its result.
type Writer struct {
	path string
	db   *sql.DB
	conn *sql.Conn

	release func() // releases the lock of the file; nil while the file has a temporary name

	mu           sync.Mutex // guards the fields below
	statements   map[string]*sql.Stmt
	pending      int  // additions in the current transaction; 0 without a transaction
	changed      bool // since the file was opened
	timer        *time.Timer
	commitErr    error              // of a transaction that the timer ended
	variants     map[variant]int    // ids
	openResults  map[[16]byte]int64 // ids of the results whose attempts are being added
	next         int64              // id of the next new result
	earlier      earlierResults
	plannedCases int                   // cases, if the run was continued
	aliasKeys    map[[16]byte][16]byte // by the key of a reused case: its key in the other run, that of an alias
	spent        spending
}

// spending sums up what all attempts used, including those that were replaced.
type spending struct {
	tokens   int64
	cost     float64
	unpriced bool // an attempt reported no cost
}

func newWriter(path, mode string) (*Writer, error) {
	w := &Writer{path: path, statements: map[string]*sql.Stmt{}, variants: map[variant]int{}, aliasKeys: map[[16]byte][16]byte{}, openResults: map[[16]byte]int64{}, next: 1}
	var err error
	if w.db, err = open(path, mode); err == nil {
		w.conn, err = w.db.Conn(context.Background())
	}
	if err != nil {
		return nil, w.wrap(err)
	}
	return w, nil
}

func (w *Writer) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the run file %s: %w", w.path, err)
}

// headDoc encodes what a run file stores of a report besides its results.
func headDoc(r *report.Report) ([]byte, error) {
	head := *r
	head.Scenarios, head.Audit, head.Errors = []report.Scenario{}, nil, []report.Problem{}
	return json.Marshal(head)
}

// statement returns a statement, which it prepares at its first use. It begins a transaction unless one is
// open.
func (w *Writer) statement(query string) (*sql.Stmt, error) {
	if w.commitErr != nil {
		return nil, w.commitErr
	}
	if w.pending == 0 {
		begin := "BEGIN IMMEDIATE"
		if !w.changed {
			begin = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; " + begin
		}
		if _, err := w.conn.ExecContext(context.Background(), begin); err != nil {
			return nil, err
		}
		w.changed = true
		w.timer = time.AfterFunc(maxDelay, w.commitAfterDelay)
		w.pending = 1
	}
	st := w.statements[query]
	if st == nil {
		var err error
		if st, err = w.conn.PrepareContext(context.Background(), query); err != nil {
			return nil, err
		}
		w.statements[query] = st
	}
	return st, nil
}

func (w *Writer) exec(query string, args ...any) error {
	st, err := w.statement(query)
	if err == nil {
		_, err = st.Exec(args...)
	}
	return err
}

// commitAfterDelay ends a transaction after maxDelay.
func (w *Writer) commitAfterDelay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commitErr = errors.Join(w.commitErr, w.commit())
}

func (w *Writer) commit() error {
	if w.pending == 0 {
		return nil
	}
	w.timer.Stop()
	err := w.storeSpent()
	if err == nil {
		_, err = w.conn.ExecContext(context.Background(), "COMMIT")
	}
	w.pending = 0
	return err
}

func (w *Writer) storeSpent() error {
	return w.exec("UPDATE run SET tokens = ?, cost = ?, unpriced = ?", w.spent.tokens, w.spent.cost, w.spent.unpriced)
}

// countAddition counts an addition, and ends the transaction if it is large.
func (w *Writer) countAddition(err error) error {
	if w.pending > 0 {
		w.pending++
	}
	if err == nil && w.pending > maxPending {
		err = w.commit()
	}
	return w.wrap(err)
}

// maxAttempts limits the attempts of a result, because an attempt's id contains its number.
const maxAttempts = 1 << 14

func attemptID(result int64, n int) int64 { return result*maxAttempts + int64(n) }

// resultID returns the id of the result with a key.
func (w *Writer) resultID(key [16]byte) int64 {
	id, ok := w.openResults[key]
	if !ok {
		if id = w.earlier.resultID(w.storedKey(key)); id == 0 {
			id = w.next
			w.next++
		}
		w.openResults[key] = id
	}
	return id
}

// Attempt adds attempt n of a result, counted from 1. agent identifies what the agent said about
// itself. A stopped attempt counts only for Spent.
func (w *Writer) Attempt(key [16]byte, n int, agent int64, a report.Attempt, stopped bool) error {
	raw, err := json.Marshal(a)
	if err == nil && n >= maxAttempts {
		err = fmt.Errorf("it has more than %d attempts of a case", maxAttempts)
	}
	if err != nil {
		return w.wrap(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	tokens, cost := a.Spent()
	w.spent.tokens += tokens
	if cost != nil {
		w.spent.cost += *cost
	}
	w.spent.unpriced = w.spent.unpriced || cost == nil && len(a.Steps) > 0
	id := w.resultID(key)
	if old, ok := w.earlier.attempt(w.storedKey(key), n); ok {
		if stopped && old.finished {
			return w.countAddition(w.storeSpent()) // it replaces nothing
		}
		if n <= w.earlier.resultAttempts(id) { // the result contains the old attempt
			if err := w.dropResult(id); err != nil {
				return w.wrap(err)
			}
		}
	}
	err = w.exec(insertAttempt, attemptID(id, n), key[:], agent, stopped, a.Status)
	if err == nil {
		err = w.exec(insertAttemptDoc, attemptID(id, n), string(raw))
	}
	return w.countAddition(err)
}

// Result adds a result, whose attempts were added before. place is its index in the plan.
func (w *Writer) Result(key [16]byte, place int, s *report.Scenario) error {
	cell, sums := s.Cell(), s.Sums(place)
	head := *s
	head.Steps, head.Attempts, head.Errors, head.Notes, head.Diff = nil, nil, nil, nil, ""
	texts := make([]string, 4)
	for i, value := range []any{cell.CI95, s.Aliases, s.Variant, head} {
		raw, err := json.Marshal(value)
		if err != nil {
			return w.wrap(err)
		}
		texts[i] = string(raw)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.resultID(key)
	delete(w.openResults, key)
	v, err := w.variant(s, texts[2])
	if err == nil {
		err = w.dropResult(id)
	}
	if err == nil && w.earlier.hasAttemptsAfter(w.storedKey(key), sums.N) {
		err = w.deleteAttempts(attemptID(id, sums.N), attemptID(id+1, 0))
	}
	var task int64
	var st *sql.Stmt
	if err == nil {
		st, err = w.statement(addToTask)
	}
	if err == nil {
		err = st.QueryRow(place, s.ID, s.Name, cell.N, cell.Passed, cell.Cost, cell.MS).Scan(&task)
	}
	if err == nil {
		err = w.exec(insertResult, id, place, task, v, s.Status, cell.Kind, cell.Why, cell.N, cell.Passed, cell.Cost, cell.MS, texts[0],
			sums.N, texts[1], encodeSums(sums))
	}
	if err == nil {
		err = w.exec(insertResultDoc, id, texts[3])
	}
	return w.countAddition(err)
}

// variant returns the id of a scenario's variant, which it adds if it is new.
func (w *Writer) variant(s *report.Scenario, labels string) (int, error) {
	v := variant{s.VariantName(), s.VariantKey}
	id, ok := w.variants[v]
	if !ok {
		id = len(w.variants)
		w.variants[v] = id
		return id, w.exec(insertVariant, id, v.Name, v.Key, labels)
	}
	return id, nil
}

// Spent returns what all attempts of the run used, including those that were replaced. unpriced means
// that some reported no cost.
func (w *Writer) Spent() (tokens int64, cost float64, unpriced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.spent.tokens, w.spent.cost, w.spent.unpriced
}

// Close completes the file with the report of the run, unless r is nil. If the report has only some
// of the results of a continued run, the file gets the sums of all results.
func (w *Writer) Close(r *report.Report) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	if r != nil {
		err = w.complete(r)
	}
	if err == nil {
		err = w.commit()
	}
	if err == nil && w.changed {
		// If no process is reading the file, it then needs no other files beside it.
		_, _ = w.conn.ExecContext(context.Background(), "PRAGMA busy_timeout=0; PRAGMA journal_mode=DELETE")
	}
	return w.wrap(errors.Join(err, w.close()))
}

func (w *Writer) complete(r *report.Report) error {
	if w.earlier.hasUnselected() {
		all := *r
		all.Comparisons, all.Baseline = nil, nil
		if err := errors.Join(w.commit(), w.sumUp(&all, w.plannedCases, true)); err != nil {
			return err
		}
		r = &all
	}
	doc, err := headDoc(r)
	if err == nil {
		err = w.exec("UPDATE run SET doc = ?", string(doc))
	}
	return err
}

func (w *Writer) close() error {
	if w.timer != nil {
		w.timer.Stop()
	}
	err := errors.Join(w.conn.Close(), w.db.Close())
	if w.release != nil {
		w.release()
	}
	return err
}
