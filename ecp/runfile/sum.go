package runfile

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"

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
		err = w.sumUp(r, planned, false)
	}
	return w.wrap(err)
}

// sumUp is like Sum. With all, it sums up all results of the file.
func (w *Writer) sumUp(r *report.Report, planned int, all bool) error {
	names, labels := make([]string, len(w.variants)), make([]map[string]string, len(w.variants))
	err := w.eachRow("SELECT id, name, labels FROM variant", func(scan func(...any) error) error {
		var id int
		var name string
		var text []byte
		if err := scan(&id, &name, &text); err != nil {
			return err
		}
		names[id] = name
		return json.Unmarshal(text, &labels[id])
	})
	if err != nil {
		return err
	}
	tally := report.NewTally()
	results := 0
	var s report.Sums
	var raw sql.RawBytes
	var id int64
	var v int
	decoder := sumsDecoder{}
	into := []any{&id, &v, &raw}
	err = w.eachRow("SELECT id, variant, sums FROM result", func(scan func(...any) error) error {
		if err := scan(into...); err != nil || !all && !w.earlier.selects(id) {
			return err
		}
		if err := decoder.decode(raw, &s); err != nil {
			return err
		}
		results++
		tally.Add(names[v], labels[v], s)
		return nil
	})
	if err != nil {
		return err
	}
	r.NotRun = max(planned-results, 0)
	tally.SetReport(r)
	return w.listResults(r, tally, all)
}

// listResults sets the results that a report lists, and their errors.
func (w *Writer) listResults(r *report.Report, tally *report.Tally, all bool) error {
	r.Scenarios, r.Errors = []report.Scenario{}, []report.Problem{}
	var ids []int64
	err := w.eachRow("SELECT id FROM result WHERE status <> 'passed' ORDER BY place", func(scan func(...any) error) error {
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
			err = w.eachRow("SELECT doc FROM result_doc WHERE id = ?", func(scan func(...any) error) error {
				var doc []byte
				if err := scan(&doc); err != nil {
					return err
				}
				return json.Unmarshal(doc, &s)
			}, id)
		}
		if err == nil {
			err = w.eachRow("SELECT doc FROM attempt JOIN attempt_doc USING (id) WHERE id > ? AND id < ? AND status <> 'passed' ORDER BY id LIMIT 1", func(scan func(...any) error) error {
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

// encodeSums encodes what a tally and a comparison need of a result.
func encodeSums(s report.Sums) []byte {
	var raw []byte
	for _, text := range []string{s.Status, s.Group, s.ExitReason} {
		raw = append(binary.AppendUvarint(raw, uint64(len(text))), text...)
	}
	var unjudged, priced, cost int64
	if s.Unjudged {
		unjudged = 1
	}
	if s.CostUSD != nil {
		priced, cost = 1, int64(math.Float64bits(*s.CostUSD))
	}
	u := s.Usage
	numbers := [sumNumbers]int64{
		int64(s.N), int64(s.Passed), int64(s.Errors), unjudged, s.DurationMS, int64(s.Checks), int64(s.PassedChecks), int64(s.Cached),
		u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.ReasoningTokens, priced, cost,
	}
	for _, n := range slices.Concat(numbers[:], s.TookMS) {
		raw = binary.AppendVarint(raw, n)
	}
	return raw
}

var errDamagedSums = errors.New("the sums of a result are damaged")

// sumNumbers is the number of numbers of encoded sums, without the durations of attempts.
const sumNumbers = 15

// sumsDecoder decodes sums. Its keys are the texts of earlier sums, which are used again because most
// are equal.
type sumsDecoder map[string]string

// decode replaces all fields of s that encodeSums encodes. It uses the memory of s.TookMS again.
func (d sumsDecoder) decode(raw []byte, s *report.Sums) error {
	for _, text := range []*string{&s.Status, &s.Group, &s.ExitReason} {
		size, n := binary.Uvarint(raw)
		if n <= 0 || size > uint64(len(raw)-n) {
			return errDamagedSums
		}
		end := n + int(size)
		known, ok := d[string(raw[n:end])]
		if !ok {
			known = string(raw[n:end])
			d[known] = known
		}
		*text, raw = known, raw[end:]
	}
	var numbers [sumNumbers]int64
	s.TookMS = s.TookMS[:0]
	for i := 0; i < sumNumbers || len(raw) > 0; i++ {
		number, n := binary.Varint(raw)
		if n <= 0 {
			return errDamagedSums
		}
		if raw = raw[n:]; i < sumNumbers {
			numbers[i] = number
		} else {
			s.TookMS = append(s.TookMS, number)
		}
	}
	s.N, s.Passed, s.Errors, s.Unjudged, s.DurationMS = int(numbers[0]), int(numbers[1]), int(numbers[2]), numbers[3] != 0, numbers[4]
	s.Checks, s.PassedChecks, s.Cached = int(numbers[5]), int(numbers[6]), int(numbers[7])
	s.Usage = report.Tokens{InputTokens: numbers[8], OutputTokens: numbers[9], CacheReadTokens: numbers[10], CacheWriteTokens: numbers[11], ReasoningTokens: numbers[12]}
	if s.CostUSD = nil; numbers[13] != 0 {
		cost := math.Float64frombits(uint64(numbers[14]))
		s.CostUSD = &cost // the tally keeps it
	}
	return nil
}

// placeKey returns a key for a result that is not identified otherwise.
func placeKey(place int) (key [16]byte) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(place)))
	copy(key[:], sum[:])
	return key
}
