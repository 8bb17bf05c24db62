package runfile

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Sum sets the fields of a report that are derived from the results of the selected cases; planned
// is the number of these cases. It lists only results that did not pass, and at most
// report.MaxListed of them; it makes no comparisons.
func (w *Writer) Sum(r *report.Report, planned int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.commit()
	if err == nil {
		err = w.sum(r, planned, false)
	}
	return w.wrap(err)
}

// sum is like Sum. With all, it sums up all results of the file.
func (w *Writer) sum(r *report.Report, planned int, all bool) error {
	labels := make([]map[string]string, len(w.variants))
	err := w.each("SELECT id, labels FROM variant", func(scan func(...any) error) error {
		var id int
		var text []byte
		if err := scan(&id, &text); err != nil {
			return err
		}
		return json.Unmarshal(text, &labels[id])
	})
	if err != nil {
		return err
	}
	tally := report.NewTally()
	results := 0
	var s report.Sums
	var took sql.RawBytes
	var id int64
	var v int
	var cost float64
	var priced bool
	into := []any{
		&id, &v, &s.Status, &s.Group, &s.N, &s.Passed, &s.Errors, &s.DurationMS, &s.ExitReason, &s.Checks, &s.PassedChecks,
		&s.Usage.InputTokens, &s.Usage.OutputTokens, &s.Usage.CacheReadTokens, &s.Usage.CacheWriteTokens, &s.Usage.ReasoningTokens, &cost, &priced, &took, &s.Cached,
	}
	err = w.each(`SELECT id, variant, status, grp, attempts, passed_attempts, errors, ms, exit_reason, checks, passed_checks,
		input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost, priced, took, cached FROM result`, func(scan func(...any) error) error {
		if err := scan(into...); err != nil || !all && !w.earlier.selects(id) {
			return err
		}
		if s.CostUSD = nil; priced {
			one := cost
			s.CostUSD = &one // the tally keeps it
		}
		s.TookMS = s.TookMS[:0]
		for len(took) > 0 {
			ms, n := binary.Varint(took)
			if n <= 0 {
				return errors.New("the durations of a result are damaged")
			}
			s.TookMS, took = append(s.TookMS, ms), took[n:]
		}
		results++
		tally.Add(labels[v], s)
		return nil
	})
	if err != nil {
		return err
	}
	r.NotRun = max(planned-results, 0)
	tally.Into(r)
	return w.listed(r, tally, all)
}

// listed sets the results that a report lists, and their errors.
func (w *Writer) listed(r *report.Report, tally *report.Tally, all bool) error {
	r.Scenarios, r.Errors = []report.Scenario{}, []report.Problem{}
	var ids []int64
	err := w.each("SELECT id FROM result WHERE status <> 'passed' ORDER BY place", func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		if len(ids) < report.MaxListed && (all || w.earlier.selects(id)) {
			ids = append(ids, id)
		}
		return err
	})
	for _, id := range ids {
		var s report.Scenario
		if err == nil {
			err = w.each("SELECT doc FROM result_doc WHERE id = ?", func(scan func(...any) error) error {
				var doc []byte
				if err := scan(&doc); err != nil {
					return err
				}
				return json.Unmarshal(doc, &s)
			}, id)
		}
		if err == nil {
			err = w.each("SELECT doc FROM attempt JOIN attempt_doc USING (id) WHERE id > ? AND id < ? AND status <> 'passed' ORDER BY id LIMIT 1", func(scan func(...any) error) error {
				var a report.Attempt
				var doc []byte
				err := scan(&doc)
				if err == nil {
					err = json.Unmarshal(doc, &a)
				}
				s.Steps, s.Errors, s.Notes, s.Diff = a.Steps, a.Errors, a.Notes, a.Diff
				return err
			}, attemptID(id, 0), attemptID(id+1, 0))
		}
		r.Scenarios, r.Errors = append(r.Scenarios, s), append(r.Errors, s.Errors...)
	}
	r.Omitted = &report.Omitted{NotPassed: r.Counts.Failed + r.Counts.Error - len(ids), Cached: tally.Cached()}
	return err
}

// placeKey returns a key for a result that is not identified otherwise.
func placeKey(place int) (key [16]byte) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(place)))
	copy(key[:], sum[:])
	return key
}
