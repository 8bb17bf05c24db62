package runfile

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// earlierResults describes the attempts and results that the file had when it was opened.
type earlierResults struct {
	attempts []storedAttempt // sorted by key and number
	starts   []int32         // by the first two bytes of a key: the index of the first attempt with at least these
	agents   []int64         // hashes of self-descriptions
	results  []storedResult  // by id
	isCopy   bool            // the file is a copy, so attempts that are not kept are deleted

	lastKey [16]byte // of the last search, because a case is searched several times in a row
	lastEnd int      // the result of that search
}

// storedAttempt describes an attempt. It is small, because there may be millions.
type storedAttempt struct {
	key      [16]byte
	result   int32 // id
	agent    int32 // index in agents
	n        int16
	finished bool // it was not stopped, and its agent started
	repeat   bool // it is made again, because it was stopped or ended in an error, or its agent changed
}

func (a storedAttempt) id() int64 { return attemptID(int64(a.result), int(a.n)) }

// storedResult describes a result. It is small, too.
type storedResult struct {
	place    int32
	attempts int16 // 0 if the result is not complete
	flags    uint16
}

// Flags of a storedResult.
const (
	isFinished = 1 << iota // an attempt finished
	isPlanned              // it belongs to the plan, and so do its finished attempts
	isSelected             // the plan of this process selects it
	isMoved
)

func (r *storedResult) has(flag uint16) bool { return r.flags&flag != 0 }

func (r *storedResult) set(flag uint16, on bool) {
	if r.flags &^= flag; on {
		r.flags |= flag
	}
}

// OtherRunError is the error of Matched for a continued run. Its attempts were made with another
// manifest, agent or configuration.
type OtherRunError struct {
	Cases int
	Name  string // of the first; may be empty
}

func (e *OtherRunError) Error() string {
	example := ""
	if e.Name != "" {
		example = fmt.Sprintf(" (the first is %q)", e.Name)
	}
	return fmt.Sprintf("%d of its cases%s do not belong to this run: the manifest, a fixture, the agent, the configuration or the judge changed, or --repeat is smaller", e.Cases, example)
}

// Continue opens the file of a run that ended or was killed. Find leaves out stopped attempts and,
// with retryErrors, those that ended in an error. Continue fails if another Writer has the file
// open.
func Continue(path string, retryErrors bool) (*Writer, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open the run file %s: %w", path, err)
	}
	release, err := lock(path)
	if err != nil {
		return nil, err
	}
	w, err := newLockedWriter(path, release)
	if err != nil {
		return nil, err
	}
	if err := w.load(retryErrors); err != nil {
		return nil, w.wrap(errors.Join(err, w.close()))
	}
	return w, nil
}

// Reuse creates a file for a run that begins, with the attempts of another run. Keep decides which of
// them the new file keeps; the other file does not change. See Create for head, and Continue for
// retryErrors.
func Reuse(other, path string, head *report.Report, retryErrors bool) (*Writer, error) {
	f, err := Open(other)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if sameFile(other, path) {
		return nil, fmt.Errorf("write the run file %s: it is the file whose results are reused", path)
	}
	w, err := replace(path, func(unfinished string) error {
		_, err := f.db.Exec("VACUUM INTO ?", unfinished)
		return err
	}, head)
	if err != nil {
		return nil, err
	}
	w.earlier.isCopy = true
	if err := w.load(retryErrors); err != nil {
		return nil, w.wrap(errors.Join(err, w.close()))
	}
	return w, nil
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// eachRow calls f for each row of a query.
func (w *Writer) eachRow(query string, f func(scan func(...any) error) error, args ...any) error {
	rows, err := w.conn.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (w *Writer) load(retryErrors bool) error {
	e := &w.earlier
	var last, count int64
	if err := w.conn.QueryRowContext(context.Background(), "SELECT COALESCE(MAX(id), 0), (SELECT COALESCE(MAX(id), 0) FROM result) FROM attempt").Scan(&last, &count); err != nil {
		return err
	}
	w.next = max(last/maxAttempts, count) + 1
	e.results = make([]storedResult, w.next)
	e.attempts = make([]storedAttempt, 0, w.next)
	var id, place int64
	into := []any{&id, &place}
	err := w.eachRow("SELECT id, place * ?1 + attempts FROM result", func(scan func(...any) error) error {
		err := scan(into...)
		if err == nil {
			e.results[id] = storedResult{place: int32(place / maxAttempts), attempts: int16(place % maxAttempts)}
		}
		return err
	}, maxAttempts)
	if err != nil {
		return err
	}
	if err := w.loadAttempts(retryErrors); err != nil {
		return err
	}
	err = w.eachRow("SELECT id, name, key FROM variant", func(scan func(...any) error) error {
		var id int
		var v variant
		err := scan(&id, &v.Name, &v.Key)
		w.variants[v] = id
		return err
	})
	if err == nil {
		err = w.conn.QueryRowContext(context.Background(), "SELECT tokens, cost, unpriced FROM run").Scan(&w.spent.tokens, &w.spent.cost, &w.spent.unpriced)
	}
	return err
}

func (w *Writer) loadAttempts(retryErrors bool) error {
	e := &w.earlier
	agents := map[int64]int32{}
	var a storedAttempt
	var key sql.RawBytes
	var id, hash, state int64
	into := []any{&id, &key, &hash, &state}
	err := w.eachRow("SELECT id, key, agent, (stopped <> 0) + 2 * (status = 'error') FROM attempt", func(scan func(...any) error) error {
		if err := scan(into...); err != nil {
			return err
		}
		stopped, failed := state&1 != 0, state&2 != 0
		a.finished, a.repeat = !stopped && (hash != 0 || !failed), stopped || retryErrors && failed
		agent, ok := agents[hash]
		if !ok {
			agent = int32(len(e.agents))
			agents[hash] = agent
			e.agents = append(e.agents, hash)
		}
		copy(a.key[:], key)
		a.result, a.n, a.agent = int32(id/maxAttempts), int16(id%maxAttempts), agent
		e.attempts = append(e.attempts, a)
		if a.finished {
			e.results[a.result].set(isFinished, true)
		}
		return nil
	})
	slices.SortFunc(e.attempts, func(a, b storedAttempt) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.n, b.n))
	})
	e.starts = make([]int32, 1<<16+1)
	for _, a := range e.attempts {
		e.starts[int(binary.BigEndian.Uint16(a.key[:]))+1]++
	}
	for i := range 1 << 16 {
		e.starts[i+1] += e.starts[i]
	}
	return err
}

// attemptsFor returns the attempts with a key.
func (e *earlierResults) attemptsFor(key [16]byte) []storedAttempt {
	if len(e.attempts) == 0 {
		return nil
	}
	if key != e.lastKey || e.lastEnd == 0 {
		e.lastKey = key
		begin := binary.BigEndian.Uint16(key[:])
		from, to := e.starts[begin], e.starts[int(begin)+1]
		after, _ := slices.BinarySearchFunc(e.attempts[from:to], key, func(a storedAttempt, key [16]byte) int {
			return cmp.Or(bytes.Compare(a.key[:], key[:]), -1)
		})
		e.lastEnd = int(from) + after
	}
	start := e.lastEnd
	for start > 0 && e.attempts[start-1].key == key {
		start--
	}
	return e.attempts[start:e.lastEnd]
}

// resultID returns the id of the result that has attempts with a key, or 0.
func (e *earlierResults) resultID(key [16]byte) int64 {
	if all := e.attemptsFor(key); len(all) > 0 {
		return int64(all[0].result)
	}
	return 0
}

// attempt returns attempt n of the result with a key.
func (e *earlierResults) attempt(key [16]byte, n int) (storedAttempt, bool) {
	for _, a := range e.attemptsFor(key) {
		if int(a.n) == n {
			return a, true
		}
	}
	return storedAttempt{}, false
}

// hasAttemptsAfter reports whether the result with a key has attempts after the first n.
func (e *earlierResults) hasAttemptsAfter(key [16]byte, n int) bool {
	all := e.attemptsFor(key)
	return len(all) > 0 && int(all[len(all)-1].n) > n
}

func (e *earlierResults) resultAttempts(id int64) int {
	if id < int64(len(e.results)) {
		return int(e.results[id].attempts)
	}
	return 0
}

// selects reports whether the plan of this process selects a result.
func (e *earlierResults) selects(id int64) bool {
	return id >= int64(len(e.results)) || e.results[id].has(isSelected)
}

// hasUnselected reports whether there are results that the plan of this process does not select.
func (e *earlierResults) hasUnselected() bool {
	return slices.ContainsFunc(e.results, func(r storedResult) bool { return r.attempts > 0 && !r.has(isSelected) })
}

// Earlier reports whether the file had attempts when it was opened.
func (w *Writer) Earlier() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.earlier.attempts) > 0
}

// Has returns the first of the keys under which the file has attempts. Unless Reuse created the
// file, Has tries only the first key: a continued run has no aliases.
func (w *Writer) Has(keys [][16]byte) ([16]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.earlier.isCopy {
		keys = keys[:1]
	}
	for _, key := range keys {
		if w.earlier.resultID(key) != 0 {
			return key, true
		}
	}
	return [16]byte{}, false
}

// Keep keeps the earlier attempts of a planned case that can be reused, and reports whether its result is
// complete.
func (w *Writer) Keep(k report.Planned) (complete bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := &w.earlier
	all := e.attemptsFor(k.StoredKey)
	id := int64(all[0].result)
	r := &e.results[id]
	reusable, ours := 0, true
	for i := range all {
		a := &all[i]
		agent := e.agents[a.agent]
		foreign := int(a.n) > k.Repeat || agent != k.Agent
		if a.repeat = a.repeat || foreign; !a.repeat {
			reusable++
		}
		ours = ours && (!foreign || !a.finished)
	}
	r.set(isPlanned, ours || e.isCopy)
	r.set(isSelected, k.Selected)
	if int(r.place) != k.Index {
		r.place = int32(k.Index)
		r.set(isMoved, true)
	}
	complete = reusable == k.Repeat && k.StoredKey == k.Key && int(r.attempts) == k.Repeat
	if e.isCopy && k.Selected {
		err = w.reuseAttempts(k, id, all, reusable)
	}
	return complete, w.wrap(err)
}

// reuseAttempts removes from a copied file the attempts that the new run does not reuse. It gives the others
// their new key if they have that of an alias. Then their result is added again.
func (w *Writer) reuseAttempts(k report.Planned, id int64, all []storedAttempt, reusable int) error {
	if reusable == len(all) && k.StoredKey == k.Key {
		return nil
	}
	err := w.dropResult(id)
	for _, a := range all {
		if a.repeat && err == nil {
			err = w.deleteAttempts(a.id()-1, a.id()+1)
		}
	}
	if k.StoredKey != k.Key && err == nil {
		w.aliasKeys[k.Key] = k.StoredKey
		err = w.exec("UPDATE attempt SET key = ? WHERE id > ? AND id < ?", k.Key[:], attemptID(id, 0), attemptID(id+1, 0))
	}
	return w.countAddition(err)
}

// Matched is called after Keep was called for all cases of the plan that have earlier attempts. It
// removes what was not kept. If it would have to remove finished attempts of a continued run, it returns
// an OtherRunError instead. cases is the number of planned cases.
func (w *Writer) Matched(cases int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plannedCases = cases
	e := &w.earlier
	if !e.isCopy {
		if err := w.checkForeignAttempts(); err != nil {
			return err
		}
	}
	changed := false
	for at := range e.results {
		id, r := int64(at), &e.results[at]
		var err error
		switch {
		case id == 0:
			continue
		case !r.has(isPlanned) || e.isCopy && !r.has(isSelected):
			changed = changed || r.attempts > 0
			err = errors.Join(w.deleteAttempts(attemptID(id, 0), attemptID(id+1, 0)), w.dropResult(id))
		case r.has(isMoved) && r.attempts > 0:
			changed = true
			err = w.exec("UPDATE result SET place = ? WHERE id = ?", r.place, id)
		default:
			continue
		}
		if err = w.countAddition(err); err != nil {
			return err
		}
	}
	if !changed {
		return nil
	}
	return w.countAddition(w.exec("UPDATE task SET place = COALESCE((SELECT MIN(place) FROM result WHERE result.task = task.id), place)"))
}

// checkForeignAttempts returns an OtherRunError if finished attempts do not belong to the plan.
func (w *Writer) checkForeignAttempts() error {
	other := &OtherRunError{}
	first := 0
	for id, r := range w.earlier.results {
		if !r.has(isFinished) || r.has(isPlanned) {
			continue
		}
		if other.Cases++; first == 0 {
			first = id
		}
	}
	if other.Cases == 0 {
		return nil
	}
	err := w.conn.QueryRowContext(context.Background(), "SELECT t.name FROM result r JOIN task t ON t.id = r.task WHERE r.id = ?", first).Scan(&other.Name)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return w.wrap(err)
	}
	return fmt.Errorf("the run file %s: %w", w.path, other)
}

// deleteAttempts deletes the attempts with ids between two others.
func (w *Writer) deleteAttempts(after, before int64) error {
	return errors.Join(
		w.exec("DELETE FROM attempt WHERE id > ? AND id < ?", after, before),
		w.exec("DELETE FROM attempt_doc WHERE id > ? AND id < ?", after, before))
}

// dropResult deletes the result of an earlier process, whose attempts change.
func (w *Writer) dropResult(id int64) error {
	if w.earlier.resultAttempts(id) == 0 {
		return nil
	}
	w.earlier.results[id].attempts = 0
	var task int64
	st, err := w.statement("SELECT task FROM result WHERE id = ?")
	if err == nil {
		err = st.QueryRow(id).Scan(&task)
	}
	if err != nil {
		return err
	}
	return errors.Join(
		w.exec(takeFromTask, id),
		w.exec("DELETE FROM result WHERE id = ?", id),
		w.exec("DELETE FROM result_doc WHERE id = ?", id),
		w.exec("DELETE FROM task WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM result WHERE task = ?1)", task))
}

// Find reports whether an earlier attempt was kept, and can be reused.
func (w *Writer) Find(key [16]byte, n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	a, ok := w.earlier.attempt(w.storedKey(key), n)
	return ok && !a.repeat
}

// Load returns an attempt that Find found.
func (w *Writer) Load(key [16]byte, n int) (a report.Attempt, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept, _ := w.earlier.attempt(w.storedKey(key), n)
	var doc []byte
	st, err := w.statement("SELECT doc FROM attempt_doc WHERE id = ?")
	if err == nil {
		err = st.QueryRow(kept.id()).Scan(&doc)
	}
	if err == nil {
		err = json.Unmarshal(doc, &a)
	}
	return a, w.wrap(err)
}

// storedKey returns the key under which the file had the attempts of a case when it was opened.
func (w *Writer) storedKey(key [16]byte) [16]byte {
	if old, ok := w.aliasKeys[key]; ok {
		return old
	}
	return key
}
