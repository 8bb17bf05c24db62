package runfile

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Filters for results that did not pass read only those, and not all results of a large run.
func TestFiltersUseIndexes(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), schema); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		q     report.Query
		index string
	}{
		{report.Query{Status: report.Failed}, "result_failed"},
		{report.Query{Status: report.Error, Kind: "file"}, "result_failed"},
		{report.Query{Kind: "file"}, "result_failed"},
		{report.Query{Status: report.StatusFlaky}, "result_flaky"},
	} {
		where, args := conditions(c.q)
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN SELECT COUNT(*) FROM task t WHERE "+where, args...)
		if err != nil {
			t.Fatal(err)
		}
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(step + "\n")
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(plan.String(), "INDEX "+c.index) {
			t.Errorf("%+v does not use the index %s:\n%s", c.q, c.index, &plan)
		}
	}
}
