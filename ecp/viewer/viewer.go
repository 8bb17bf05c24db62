// Package viewer serves runs as pages to a browser on this machine. The pages have the same layout as
// a report file, but show large runs in parts, which are read from run files.
//
// Guarantees: only requests with the token, which is part of the address, are answered, and requests
// from pages of other origins are refused (internal/httpguard); requests cannot start or change
// anything; each page shows a bounded part of a run. The package does not listen, and does not open
// browsers.
package viewer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// Sizes of pages.
const (
	rowsOfPage     = 100
	attemptsOfPage = 20
)

// handler serves runs.
type handler struct {
	runs  []*runfile.File
	pages *report.Pages
	base  string // path prefix of all pages; contains the token
	mux   *http.ServeMux
}

// New returns a handler that serves runs at httpguard.PathOf(o.Token).
func New(runs []*runfile.File, o httpguard.Options) (http.Handler, error) {
	pages, err := report.NewPages()
	if err != nil {
		return nil, err
	}
	h := &handler{runs: runs, pages: pages, base: httpguard.PathOf(o.Token), mux: http.NewServeMux()}
	h.handle("GET /{$}", h.index)
	h.handle("GET /run/{run}/{$}", h.overview)
	h.handle("GET /run/{run}/result/{id}", h.result)
	h.handle("GET /compare", h.compare)
	return httpguard.New(o, httpguard.Pages{Own: true, Methods: http.MethodGet}).TokenInPath(h.mux), nil
}

// errNotFound is the error for an unknown path.
var errNotFound = errors.New("there is no such page")

func (h *handler) handle(pattern string, build func(*http.Request) (*report.Page, error)) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		page, err := build(r)
		switch {
		case errors.Is(err, errNotFound), errors.Is(err, runfile.ErrNoResult):
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		page.Live = true
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = h.pages.Write(w, page) // fails if the reader disconnected
	})
}

// run returns the run of a request, its index, and the path prefix of its pages.
func (h *handler) run(r *http.Request) (f *runfile.File, at int, base string, err error) {
	at, err = strconv.Atoi(r.PathValue("run"))
	if err != nil || at < 0 || at >= len(h.runs) {
		return nil, 0, "", errNotFound
	}
	return h.runs[at], at, h.runPath(at), nil
}

func (h *handler) runPath(run int) string { return fmt.Sprintf("%srun/%d/", h.base, run) }

// index lists the runs. With a single run, it shows the run's overview.
func (h *handler) index(r *http.Request) (*report.Page, error) {
	if len(h.runs) == 1 {
		r.SetPathValue("run", "0")
		return h.overview(r)
	}
	page := &report.Page{Title: "Runs"}
	for i, f := range h.runs {
		page.Runs = append(page.Runs, report.RunLink{Href: h.runPath(i), Report: f.Report()})
	}
	page.Crumbs = h.crumbs()
	return page, nil
}

// crumbs returns links to the list of runs, if there are several, and to the comparison, if there is
// more than one side.
func (h *handler) crumbs() (out []report.Link) {
	if len(h.runs) > 1 {
		out = append(out, report.Link{Text: "Runs", Href: h.base})
	}
	if len(h.sides()) > 1 {
		out = append(out, report.Link{Text: "Compare", Href: h.base + "compare"})
	}
	return out
}

func (h *handler) overview(r *http.Request) (*report.Page, error) {
	f, _, base, err := h.run(r)
	if err != nil {
		return nil, err
	}
	params := r.URL.Query()
	q := report.Query{Text: params.Get("q"), Status: params.Get("status"), Kind: params.Get("kind"), Sort: params.Get("sort")}
	grid, next, err := f.Grid(r.Context(), q, params.Get("after"), rowsOfPage)
	if err != nil {
		return nil, err
	}
	if next != "" {
		params.Set("after", next)
		grid.Next = base + "?" + params.Encode()
	}
	for i := range grid.Rows {
		for j := range grid.Rows[i].Cells {
			if c := &grid.Rows[i].Cells[j]; c.Ran {
				c.Href = base + "result/" + c.Href
			}
		}
	}
	page := &report.Page{Title: f.Report().Name, Run: f.Report(), Failures: f.Failures(), Query: q, Grid: grid, Crumbs: h.crumbs()}
	page.LinkPairs(func(place int) string {
		id, err := f.ID(r.Context(), place)
		if err != nil {
			return ""
		}
		return fmt.Sprintf("%sresult/%d", base, id)
	})
	return page, nil
}

func (h *handler) result(r *http.Request) (*report.Page, error) {
	f, _, base, err := h.run(r)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, errNotFound
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // missing or invalid: start with the first attempt
	from = max(from, 1)
	d, prev, next, err := f.Result(r.Context(), id, from, attemptsOfPage)
	if err != nil {
		return nil, err
	}
	link := func(id int64, text string) *report.Link {
		if id == 0 {
			return nil
		}
		return &report.Link{Text: text, Href: fmt.Sprintf("%sresult/%d", base, id)}
	}
	d.Prev, d.Next = link(prev, "previous that did not pass"), link(next, "next that did not pass")
	if last := from + attemptsOfPage; last <= d.Total {
		d.More = &report.Link{Text: fmt.Sprintf("Attempts from %d on, of %d", last, d.Total), Href: fmt.Sprintf("%sresult/%d?from=%d", base, id, last)}
	}
	page := &report.Page{Title: d.Name, Detail: d, Crumbs: h.crumbs()}
	page.Crumbs = append(page.Crumbs, report.Link{Text: f.Report().Name, Href: base})
	return page, nil
}

// side identifies a variant of a run by its indexes.
type side struct{ run, variant int }

func (s side) key() string { return fmt.Sprintf("%d.%d", s.run, s.variant) }

// sides lists all variants of all runs.
func (h *handler) sides() (out []side) {
	for i, f := range h.runs {
		for j := range f.Variants() {
			out = append(out, side{i, j})
		}
	}
	return out
}

// sideName returns the display name of a side. Numbers distinguish runs with the same name.
func (h *handler) sideName(s side) string {
	f := h.runs[s.run]
	name := f.Variants()[s.variant]
	if len(h.runs) > 1 {
		name = strings.TrimSpace(fmt.Sprintf("%s (%d) %s", f.Report().Name, s.run+1, name))
	}
	if name == "" {
		name = f.Report().Name
	}
	return name
}

// compare shows a comparison of the two requested sides. The default is the first two.
func (h *handler) compare(r *http.Request) (*report.Page, error) {
	all := h.sides()
	if len(all) < 2 {
		return nil, fmt.Errorf("%w: there is nothing to compare with", errNotFound)
	}
	a, b := all[0], all[1]
	page := &report.PairPage{}
	for _, s := range all {
		page.Sides = append(page.Sides, report.Link{Text: h.sideName(s), Href: s.key()})
		if s.key() == r.URL.Query().Get("a") {
			a = s
		}
		if s.key() == r.URL.Query().Get("b") {
			b = s
		}
	}
	page.KeyA, page.KeyB = a.key(), b.key()
	before, err := h.compareInput(r.Context(), a)
	if err != nil {
		return nil, err
	}
	now, err := h.compareInput(r.Context(), b)
	if err != nil {
		return nil, err
	}
	page.Pair = report.NewPair(before, now)
	page.HrefA = func(c report.Change) string { return h.runPath(a.run) + "result/" + strconv.Itoa(c.PlaceA) }
	page.HrefB = func(c report.Change) string { return h.runPath(b.run) + "result/" + strconv.Itoa(c.PlaceB) }
	above := report.Link{Text: "Runs", Href: h.base}
	if len(h.runs) == 1 {
		above.Text = h.runs[0].Report().Name
	}
	return &report.Page{Title: "Comparison", Pair: page, Crumbs: []report.Link{above}}, nil
}

func (h *handler) compareInput(ctx context.Context, s side) (report.Compared, error) {
	out, err := h.runs[s.run].Side(ctx, s.variant)
	out.Name = h.sideName(s)
	return out, err
}

// Address returns the URL of the pages on a server that listens at hostport.
func Address(hostport, token string) string {
	return (&url.URL{Scheme: "http", Host: hostport, Path: httpguard.PathOf(token)}).String()
}
