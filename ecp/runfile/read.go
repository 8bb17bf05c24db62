package runfile

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// File is an open run file. Each method reads one state of the run, also while another process adds
// results. Report, Failures and Variants return what they were when the file was opened.
type File struct {
	db       *sql.DB
	head     *report.Report
	variants []variant
	failures []report.Failure
}

// ErrNotRun is the error of Open for a file that is not a run file.
var ErrNotRun = errors.New("not a run file")

// ErrNoResult is the error of Result for an unknown id.
var ErrNoResult = errors.New("the run has no such result")

// Open opens a run file for reading.
func Open(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil { // SQLite's own error does not name the file
		return nil, fmt.Errorf("open the run file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open the run file %s: %w: %w", path, ErrNotRun, safeio.ErrNotRegular)
	}
	f, err := load(path)
	var failed *sqlite.Error
	if errors.As(err, &failed) && failed.Code() == lib.SQLITE_READONLY_ROLLBACK {
		if err = rollBack(path); err == nil {
			f, err = load(path)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the run file %s: %w", path, err)
	}
	return f, nil
}

// rollBack rolls back the transaction of a process that was killed, which a reader cannot do.
func rollBack(path string) error {
	db, err := open(path, "rw")
	if err != nil {
		return err
	}
	_, err = db.Exec("SELECT COUNT(*) FROM sqlite_master")
	return errors.Join(err, db.Close())
}

func load(path string) (*File, error) {
	db, err := open(path, "ro")
	if err != nil {
		return nil, err
	}
	f := &File{db: db}
	if err := f.load(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return f, nil
}

func (f *File) load() error {
	var kind, fileVersion int
	err := f.db.QueryRow("PRAGMA application_id").Scan(&kind)
	if failed, ok := errors.AsType[*sqlite.Error](err); ok && failed.Code() == lib.SQLITE_NOTADB || err == nil && kind != application {
		return ErrNotRun
	}
	if err != nil {
		return err
	}
	if err := f.db.QueryRow("PRAGMA user_version").Scan(&fileVersion); err != nil {
		return err
	}
	if fileVersion != version {
		return fmt.Errorf("it has version %d, but this ecp reads version %d: create it again, or use the ecp that created it", fileVersion, version)
	}
	var doc string
	if err := f.db.QueryRow("SELECT doc FROM run").Scan(&doc); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(doc), &f.head); err != nil {
		return err
	}
	tx, err := f.db.Begin()
	if err != nil {
		return err
	}
	defer rollback(tx)
	if f.variants, err = variants(context.Background(), tx); err != nil {
		return err
	}
	f.failures, err = failures(tx)
	return err
}

// rollback ends a transaction that only reads.
func rollback(tx *sql.Tx) { _ = tx.Rollback() }

// variants returns the columns of the grid.
func variants(ctx context.Context, tx *sql.Tx) (out []variant, err error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, key FROM variant ORDER BY id")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v variant
		if err := rows.Scan(&v.Name, &v.Key); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

func failures(tx *sql.Tx) ([]report.Failure, error) {
	rows, err := tx.Query("SELECT kind, COUNT(*) FROM result WHERE status <> 'passed' AND kind <> '' GROUP BY kind")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	counts := map[string]int{}
	for rows.Next() {
		var kind string
		var n int
		if err := rows.Scan(&kind, &n); err != nil {
			return nil, err
		}
		counts[kind] = n
	}
	return report.SortedFailures(counts), rows.Err()
}

// ID returns the id of the result at an index of the plan, or 0.
func (f *File) ID(ctx context.Context, place int) (id int64, err error) {
	err = f.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(id), 0) FROM result WHERE place = ?", place).Scan(&id)
	return id, err
}

// Close closes the file.
func (f *File) Close() error { return f.db.Close() }

// Report returns the report of the run without its scenarios.
func (f *File) Report() *report.Report { return f.head }

// Failures returns the number of failures of each kind.
func (f *File) Failures() []report.Failure { return f.failures }

// Variants returns the names of the variants. A run without a matrix has one variant with an empty
// name.
func (f *File) Variants() []string { return names(f.variants) }

func names(variants []variant) []string {
	out := make([]string, len(variants))
	for i, v := range variants {
		out[i] = v.Name
	}
	return out
}

// sortColumns maps the sort keys of a grid to SQL expressions, each of which has an index.
var sortColumns = map[string]string{"": "t.place", report.SortName: "t.name", report.SortRate: "t.rate", report.SortCost: "-t.cost", report.SortTime: "-t.ms"}

// Grid returns at most limit rows, starting after a cursor that an earlier call returned as next, or
// with the first row if after is empty. next is empty if there are no more rows. The Href of a cell is
// the id of its result.
func (f *File) Grid(ctx context.Context, q report.Query, after string, limit int) (g *report.Grid, next string, err error) {
	order, ok := sortColumns[q.Sort]
	if !ok {
		order = sortColumns[""]
	}
	where, args := conditions(q)
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, "", err
	}
	defer rollback(tx)
	columns, err := variants(ctx, tx)
	if err != nil {
		return nil, "", err
	}
	matching := "task t WHERE " + where
	if len(args) > 0 || q.Status == report.StatusFlaky { // find the rows once, for both statements; the rollback drops the table
		if _, err := tx.ExecContext(ctx, "CREATE TEMP TABLE hit AS SELECT t.id FROM task t WHERE "+where, args...); err != nil {
			return nil, "", err
		}
		matching, where, args = "hit", "t.id IN hit", nil
	}
	g = &report.Grid{Columns: names(columns)}
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+matching, args...).Scan(&g.Total); err != nil {
		return nil, "", err
	}
	if value, id, ok := cursor(after); ok {
		where += " AND (" + order + ", t.id) > (?, ?)"
		args = append(args, value, id)
	}
	rows, err := tx.QueryContext(ctx, fmt.Sprintf("SELECT t.id, t.name, t.rate, t.cost, t.ms, %s FROM task t WHERE %s ORDER BY %[1]s, t.id LIMIT ?", order, where), append(args, limit)...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	places, ids := map[int64]int{}, []any{}
	var last any
	for rows.Next() {
		var id int64
		row := report.GridRow{Cells: make([]report.Cell, len(g.Columns))}
		if err := rows.Scan(&id, &row.Name, &row.Rate, &row.Cost, &row.MS, &last); err != nil {
			return nil, "", err
		}
		places[id] = len(g.Rows)
		ids = append(ids, id)
		g.Rows = append(g.Rows, row)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil || len(ids) == 0 {
		return g, "", err
	}
	if len(ids) == limit {
		raw, err := json.Marshal([]any{last, ids[len(ids)-1]})
		if err != nil {
			return nil, "", err
		}
		next = string(raw)
	}
	return g, next, addCells(ctx, tx, g, places, ids)
}

// cursor parses a cursor that Grid returned as next.
func cursor(text string) (value any, id float64, ok bool) {
	var parts []any
	if json.Unmarshal([]byte(text), &parts) != nil || len(parts) != 2 {
		return nil, 0, false
	}
	switch parts[0].(type) {
	case string, float64:
	default:
		return nil, 0, false
	}
	id, ok = parts[1].(float64)
	return parts[0], id, ok
}

// conditions returns the SQL condition for the rows of table task, named t, and its arguments.
func conditions(q report.Query) (where string, args []any) {
	// The conditions repeat those of the indexes result_unpassed, result_failed and result_flaky.
	// Otherwise, SQLite does not use the indexes and reads all results. A result that passed has an
	// empty reason.
	where = "1"
	if q.Text != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(q.Text) + "%"
		where += ` AND (t.name LIKE ? ESCAPE '\' OR t.id IN (SELECT task FROM result WHERE status <> 'passed' AND why LIKE ? ESCAPE '\'))`
		args = append(args, pattern, pattern)
	}
	var some []string
	switch q.Status {
	case report.Passed: // EXISTS alone is right, but slow, because it reads a result of each task
		where += " AND (t.n > 0 AND t.id NOT IN (SELECT task FROM result WHERE status <> 'passed') OR EXISTS (SELECT 1 FROM result r WHERE r.task = t.id AND r.status = 'passed'))"
	case report.Failed, report.Error:
		some = append(some, "status <> 'passed' AND status = ?")
		args = append(args, q.Status)
	case report.StatusFlaky:
		some = append(some, "passed > 0 AND passed < n")
	}
	if q.Kind != "" { // one result must have both the status and the kind, and no result that passed has a kind
		if q.Status == report.Passed {
			where += " AND FALSE"
		}
		some = append(some, "status <> 'passed' AND kind = ?")
		args = append(args, q.Kind)
	}
	if len(some) > 0 { // "+" keeps SQLite from choosing an index for DISTINCT, and reading all results
		where += " AND t.id IN (SELECT DISTINCT +task FROM result WHERE " + strings.Join(some, " AND ") + ")"
	}
	return where, args
}

// addCells fills in the cells of the rows of g. ids are the ids of the rows' tasks, and places their
// indexes in g.Rows.
func addCells(ctx context.Context, tx *sql.Tx, g *report.Grid, places map[int64]int, ids []any) error {
	rows, err := tx.QueryContext(ctx, "SELECT id, task, variant, status, kind, why, n, passed, cost, ms, ci95 FROM result WHERE task IN (?"+strings.Repeat(",?", len(ids)-1)+")", ids...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id, task int64
		var column int
		var ci string
		c := report.Cell{Ran: true}
		if err := rows.Scan(&id, &task, &column, &c.Status, &c.Kind, &c.Why, &c.N, &c.Passed, &c.Cost, &c.MS, &ci); err != nil {
			return err
		}
		if ci != "null" { // most cells
			if err := json.Unmarshal([]byte(ci), &c.CI95); err != nil {
				return err
			}
		}
		c.Href = strconv.FormatInt(id, 10)
		g.Rows[places[task]].Cells[column] = c
	}
	return rows.Err()
}

// Result returns a result with at most limit attempts, starting at attempt number from. prev and next
// are the ids of the closest results that did not pass, or 0.
func (f *File) Result(ctx context.Context, id int64, from, limit int) (d *report.Detail, prev, next int64, err error) {
	tx, err := f.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, 0, err
	}
	defer rollback(tx)
	var doc, status, kind, why string
	d = &report.Detail{Scenario: &report.Scenario{}, Anchor: "result"}
	err = tx.QueryRowContext(ctx, "SELECT doc, status, kind, why, attempts FROM result JOIN result_doc USING (id) WHERE id = ?", id).Scan(&doc, &status, &kind, &why, &d.Total)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, 0, 0, ErrNoResult
	}
	if err == nil {
		err = json.Unmarshal([]byte(doc), d.Scenario)
	}
	if err != nil {
		return nil, 0, 0, err
	}
	d.Reason = why
	rows, err := tx.QueryContext(ctx, "SELECT id % ?, doc FROM attempt_doc WHERE id >= ? AND id < ? ORDER BY id LIMIT ?", maxAttempts, attemptID(id, from), attemptID(id+1, 0), limit)
	if err != nil {
		return nil, 0, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var a report.NumberedAttempt
		if err := rows.Scan(&a.Number, &doc); err != nil {
			return nil, 0, 0, err
		}
		if err := json.Unmarshal([]byte(doc), &a.Attempt); err != nil {
			return nil, 0, 0, err
		}
		d.Shown = append(d.Shown, a)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, 0, 0, err
	}
	err = tx.QueryRowContext(ctx, "SELECT COALESCE((SELECT id FROM result WHERE status <> 'passed' AND place < here.place ORDER BY place DESC LIMIT 1), 0), COALESCE((SELECT id FROM result WHERE status <> 'passed' AND place > here.place ORDER BY place LIMIT 1), 0) FROM result here WHERE id = ?", id).Scan(&prev, &next)
	return d, prev, next, err
}

// Side returns the input of a comparison for the variant at an index of Variants. The place of a
// sample is the id of its result.
func (f *File) Side(ctx context.Context, column int) (side report.Compared, err error) {
	v := f.variants[column]
	side = report.Compared{Name: v.Name, Run: f.head.RunID, Key: v.Key}
	rows, err := f.db.QueryContext(ctx, "SELECT r.id, t.name, t.key, aliases, sums FROM result r JOIN task t ON t.id = r.task WHERE variant = ? ORDER BY r.place", column)
	if err != nil {
		return side, err
	}
	defer rows.Close()
	decoder := sumsDecoder{}
	var raw sql.RawBytes
	for rows.Next() {
		var s report.Sums
		var aliases string
		if err := rows.Scan(&s.Place, &s.Name, &s.Case, &aliases, &raw); err != nil {
			return side, err
		}
		if err := decoder.decode(raw, &s); err != nil {
			return side, err
		}
		if err := json.Unmarshal([]byte(aliases), &s.Aliases); err != nil {
			return side, err
		}
		side.Samples = append(side.Samples, s.Sample)
	}
	return side, rows.Err()
}
