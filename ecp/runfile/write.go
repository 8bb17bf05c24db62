// Package runfile keeps the results of one run in an SQLite file, from which pages can be read
// without reading the whole file.
//
// Guarantees: a file is written atomically; the size of a page is bounded, regardless of the number
// of results. The package stores the contents of a report, and only computes the values by which
// pages are sorted and filtered. It refuses files of other versions. It does not render reports, and
// does not modify existing files.
package runfile

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Extension is the extension of run files.
const Extension = ".ecprun"

// version is the version of the schema. application is the SQLite application ID of run files, "ecpr".
const (
	version     = 1
	application = 0x65637072
)

const schema = `
CREATE TABLE run(doc TEXT NOT NULL, variants TEXT NOT NULL, failures TEXT NOT NULL);
CREATE TABLE task(id INTEGER PRIMARY KEY, name TEXT NOT NULL, rate REAL NOT NULL, cost REAL NOT NULL, ms INTEGER NOT NULL);
CREATE TABLE result(
	id INTEGER PRIMARY KEY, task INTEGER NOT NULL, variant INTEGER NOT NULL,
	status TEXT NOT NULL, kind TEXT NOT NULL, why TEXT NOT NULL, n INTEGER NOT NULL, passed INTEGER NOT NULL, errors INTEGER NOT NULL, cost REAL NOT NULL, ms INTEGER NOT NULL, ci95 TEXT NOT NULL,
	case_key TEXT NOT NULL, aliases TEXT NOT NULL, grp TEXT NOT NULL, unjudged INTEGER NOT NULL, doc TEXT NOT NULL);
CREATE TABLE attempt(result INTEGER NOT NULL, n INTEGER NOT NULL, doc TEXT NOT NULL);`

// indexes are created after the inserts, which is faster.
const indexes = `
CREATE UNIQUE INDEX attempt_result ON attempt(result, n);
CREATE INDEX result_task ON result(task, variant);
CREATE INDEX result_variant ON result(variant, id);
CREATE INDEX result_failed ON result(status, kind, task) WHERE status <> 'passed';
CREATE INDEX task_rate ON task(rate, id);
CREATE INDEX task_cost ON task(-cost, id);
CREATE INDEX task_ms ON task(-ms, id);
CREATE INDEX task_name ON task(name, id);`

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
	made := filepath.Join(dir, "run")
	if err = write(made, r); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return fmt.Errorf("write the run file %s: %w", path, err)
	}
	return nil
}

func write(path string, r *report.Report) (err error) {
	db, err := open(path, "rwc")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; %s", application, version, schema)); err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	w := &writer{tx: tx, tasks: map[string]*task{}, variants: map[variant]int{}, failures: map[string]int{}}
	if err := w.prepare(); err != nil {
		return err
	}
	for i := range r.Scenarios {
		if err := w.result(&r.Scenarios[i]); err != nil {
			return err
		}
	}
	if err := w.finish(r); err != nil {
		return err
	}
	if _, err := tx.Exec(indexes); err != nil {
		return err
	}
	return tx.Commit()
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
	db, err := sql.Open("sqlite", uri.String()+"?mode="+mode+"&_pragma=cache_size(-8000)&_pragma=busy_timeout(5000)&_pragma=trusted_schema(0)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

// task is a row of the grid.
type task struct {
	id        int
	name      string
	n, passed int
	cost      float64
	ms        int64
}

// writer writes one file.
type writer struct {
	tx              *sql.Tx
	insert, attempt *sql.Stmt
	results         int
	tasks           map[string]*task // by scenario ID
	variants        map[variant]int
	failures        map[string]int
}

func (w *writer) prepare() (err error) {
	w.insert, err = w.tx.Prepare("INSERT INTO result VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)")
	if err == nil {
		w.attempt, err = w.tx.Prepare("INSERT INTO attempt VALUES (?,?,?)")
	}
	return err
}

// result writes a scenario to the table result, and its attempts to the table attempt.
func (w *writer) result(s *report.Scenario) error {
	w.results++
	cell, sample := s.Cell(), s.Sample(w.results)
	t := w.tasks[s.ID]
	if t == nil {
		t = &task{id: len(w.tasks) + 1, name: s.Name}
		w.tasks[s.ID] = t
	}
	t.n, t.passed, t.cost, t.ms = t.n+cell.N, t.passed+cell.Passed, t.cost+cell.Cost, t.ms+cell.MS
	v := variant{s.VariantName(), s.VariantKey}
	if _, ok := w.variants[v]; !ok {
		w.variants[v] = len(w.variants)
	}
	if cell.Kind != "" {
		w.failures[cell.Kind]++
	}
	attempts := s.AllAttempts()
	head := *s
	head.Steps, head.Attempts, head.Errors, head.Notes, head.Diff = nil, nil, nil, nil, ""
	texts := make([]string, 3)
	for i, value := range []any{cell.CI95, s.Aliases, head} {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		texts[i] = string(raw)
	}
	_, err := w.insert.Exec(w.results, t.id, w.variants[v], s.Status, cell.Kind, cell.Why, cell.N, cell.Passed, sample.Errors, cell.Cost, cell.MS, texts[0],
		s.ID, texts[1], sample.Group, sample.Unjudged, texts[2])
	for n := range attempts {
		raw, encodeErr := json.Marshal(attempts[n])
		if err = errors.Join(err, encodeErr); err == nil {
			_, err = w.attempt.Exec(w.results, n+1, string(raw))
		}
		if err != nil {
			break
		}
	}
	return err
}

// finish writes the values that depend on all results.
func (w *writer) finish(r *report.Report) error {
	for _, t := range w.tasks {
		rate := float64(t.passed) / float64(max(t.n, 1))
		if _, err := w.tx.Exec("INSERT INTO task VALUES (?,?,?,?,?)", t.id, t.name, rate, t.cost, t.ms); err != nil {
			return err
		}
	}
	columns := make([]variant, len(w.variants))
	for v, at := range w.variants {
		columns[at] = v
	}
	head := *r
	head.Scenarios, head.Audit, head.Errors = []report.Scenario{}, nil, []report.Problem{}
	var texts []any
	for _, value := range []any{head, columns, report.SortedFailures(w.failures)} {
		raw, err := json.Marshal(value)
		if err != nil {
			return err
		}
		texts = append(texts, string(raw))
	}
	_, err := w.tx.Exec("INSERT INTO run VALUES (?,?,?)", texts...)
	return err
}
