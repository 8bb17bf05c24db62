package budget_test

import (
	"context"
	"database/sql"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/chat/budget"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a model whose answers use as many tokens each.
type scripted int64

func (s scripted) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		_ = yield(llm.Delta{Kind: llm.TextDelta, Text: "12345678"}, nil) &&
			(s == 0 || yield(llm.Delta{Kind: llm.UsageDelta, Usage: llm.Usage{Input: int64(s)}}, nil)) &&
			yield(llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}, nil)
	}
}

func newKeeper(t *testing.T, dir string, now func() time.Time, limits config.Budget) *budget.Keeper {
	t.Helper()
	k := budget.New(budget.Options{Dir: dir, Now: now, Log: slog.New(slog.DiscardHandler), Config: func() config.Budget { return limits }})
	t.Cleanup(k.Close)
	return k
}

// prices are a dollar for a million tokens.
func prices() config.Cost {
	one := 1.0
	return config.Cost{Input: &one, Output: &one}
}

// ask makes a request and returns its error.
func ask(t *testing.T, m llm.Model, req llm.Request) (err error) {
	t.Helper()
	for _, e := range m.Stream(t.Context(), req) {
		err = e
	}
	return err
}

func turnOf(chat, turn string) llm.Request {
	return llm.Request{Purpose: llm.PurposeTurn, Origin: llm.Origin{Chat: chat, Turn: turn}}
}

// The time of a turn counts, but not while the user is asked.
func TestTimeOfTurns(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		k := newKeeper(t, dir, time.Now, config.Budget{})
		limits := config.Budget{Turn: []string{"10 minutes"}, Chat: []string{"15m"}}
		end := k.Begin("c", "t1", limits)
		time.Sleep(9 * time.Minute)
		resumeOne, resumeTwo := k.Pause("c"), k.Pause("c")
		time.Sleep(time.Hour)
		resumeOne()
		time.Sleep(time.Hour)
		resumeTwo()
		if state := k.Check(t.Context(), "c"); state.Reached != "" || len(state.Warnings) != 1 || !strings.Contains(state.Warnings[0], "90% of this turn's budget is spent: 9m0s of 10m0s.") {
			t.Errorf("%+v", state)
		}
		time.Sleep(time.Minute)
		if state := k.Check(t.Context(), "c"); !strings.Contains(state.Reached, "This turn's budget is used up: 10m0s of 10m0s") {
			t.Errorf("%+v", state)
		}
		k.Extend(t.Context(), "c")
		if state := k.Check(t.Context(), "c"); state.Reached != "" {
			t.Errorf("the limit is still reached after it was extended: %+v", state)
		}
		end()
		time.Sleep(time.Hour) // no turn runs
		defer k.Begin("c", "t2", limits)()
		time.Sleep(4 * time.Minute)
		if state := k.Check(t.Context(), "c"); state.Reached != "" || len(state.Warnings) != 1 || !strings.Contains(state.Warnings[0], "this chat's budget is spent: 14m0s of 15m0s") {
			t.Errorf("the next turn: %+v", state)
		}
	})
}

// A day ends at midnight of the user's clock.
func TestDaysBeginAtMidnight(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 31, 23, 58, 0, 0, time.Local)
	k := newKeeper(t, t.TempDir(), func() time.Time { return now }, config.Budget{Day: []string{"$1"}})
	m := k.Model(scripted(2_000_000), "p/m", prices())
	if err := ask(t, m, turnOf("c", "t")); err != nil {
		t.Fatal(err)
	}
	if state := k.Check(t.Context(), "c"); !strings.Contains(state.Reached, "$2.00 of $1.00") {
		t.Errorf("%+v", state)
	}
	now = now.Add(5 * time.Minute)
	if state := k.Check(t.Context(), "c"); state.Reached != "" {
		t.Errorf("the next day: %+v", state)
	}
	r, err := k.Report(t.Context())
	if err != nil || len(r.LastHour) != 1 || r.LastHour[0].Cost != 2 || len(r.Today) != 0 || len(r.Month) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// At a limit, the model refuses side requests of each purpose. It does not refuse the requests of a
// turn, because the turn itself asks the user.
func TestRequestsAtALimit(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, t.TempDir(), time.Now, config.Budget{Day: []string{"100 tokens"}})
	m := k.Model(scripted(100), "p/m", prices())
	for _, purpose := range []llm.Purpose{llm.PurposeTitle, llm.PurposeCompact, llm.PurposeRewrite, llm.PurposeCompletion, llm.PurposeSampling} {
		err := ask(t, m, llm.Request{Purpose: purpose})
		if first := purpose == llm.PurposeTitle; first != (err == nil) {
			t.Errorf("%s: %v", purpose, err)
		}
	}
	if err := ask(t, m, turnOf("c", "t")); err != nil {
		t.Error(err)
	}
}

// The budget of the running turn counts its own requests, those of its subagents, and those of the chat
// that name no turn. The chat's budget also counts a request of an earlier turn that is made later, such
// as the one for a title.
func TestWhoPays(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, t.TempDir(), time.Now, config.Budget{})
	m := k.Model(scripted(10), "p/m", prices())
	defer k.Begin("c", "t2", config.Budget{Turn: []string{"1k tokens"}, Chat: []string{"1k tokens"}})()
	for _, o := range []llm.Origin{
		{Chat: "c", Turn: "t2"}, {Chat: "child", Parent: "c", Turn: "call"}, {Chat: "c"}, {Chat: "c", Turn: "t1"}, {Chat: "other", Turn: "x"}, {},
	} {
		if err := ask(t, m, llm.Request{Purpose: llm.PurposeTurn, Origin: o}); err != nil {
			t.Fatal(err)
		}
	}
	limits, err := k.Limits(t.Context(), "c")
	if err != nil || len(limits) != 2 || limits[0].Spent != 30 || limits[1].Spent != 40 {
		t.Errorf("%+v, %v", limits, err)
	}
}

// If a server reports no usage, tokens are estimated from the texts of the request and the answer.
func TestUsageIsEstimated(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, t.TempDir(), time.Now, config.Budget{})
	req := turnOf("c", "t")
	req.System = strings.Repeat("abcd", 10)
	if err := ask(t, k.Model(scripted(0), "p/m", config.Cost{}), req); err != nil {
		t.Fatal(err)
	}
	if r, err := k.Report(t.Context()); err != nil || len(r.Today) != 1 || r.Today[0].Tokens != 12 || r.Today[0].Priced != 0 || r.Today[0].Requests != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// Several daemons create the file and write to it at the same time: nothing is lost.
func TestManyDaemonsShareTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const daemons, requests = 6, 20
	var all sync.WaitGroup
	for range daemons {
		k := newKeeper(t, dir, time.Now, config.Budget{})
		all.Go(func() {
			m := k.Model(scripted(1), "p/m", prices())
			for range requests {
				_ = ask(t, m, turnOf("c", "t"))
			}
			k.Close()
		})
	}
	all.Wait()
	k := newKeeper(t, dir, time.Now, config.Budget{Chat: []string{"1M tokens"}})
	r, err := k.Report(t.Context())
	if sum := budget.Sum(r.Month); err != nil || sum.Tokens != daemons*requests || sum.Requests != daemons*requests {
		t.Errorf("%+v, %v", sum, err)
	}
	if limits, err := k.Limits(t.Context(), "c"); err != nil || len(limits) != 1 || limits[0].Spent != daemons*requests {
		t.Errorf("%+v, %v", limits, err)
	}
}

// Answers never wait for the file, even while another process holds it.
func TestRecordingDoesNotWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := newKeeper(t, dir, time.Now, config.Budget{})
	if _, err := k.Report(t.Context()); err != nil { // makes the file
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(dir, spending.File))+"?_txlock=exclusive")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m := k.Model(scripted(1), "p/m", prices())
		for range 100 {
			_ = ask(t, m, turnOf("c", "t"))
		}
	}()
	<-done // if a request waited for the lock, this would block until the test fails
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if r, err := k.Report(t.Context()); err != nil || budget.Sum(r.Today).Requests != 100 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestForget(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, t.TempDir(), time.Now, config.Budget{})
	if err := ask(t, k.Model(scripted(5), "p/m", prices()), turnOf("c", "t")); err != nil {
		t.Fatal(err)
	}
	if err := k.SetLimits(t.Context(), "c", "chat", []string{"$1"}); err != nil {
		t.Fatal(err)
	}
	k.Forget(t.Context(), "c")
	limits, err := k.Limits(t.Context(), "c")
	if r, _ := k.Report(t.Context()); err != nil || len(limits) != 0 || budget.Sum(r.Today).Tokens != 5 {
		t.Errorf("%+v, %+v, %v", limits, r, err)
	}
}

// A damaged file is named in the chat, also if a request beside the turn found it first.
func TestDamagedFileIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, spending.File)
	if err := os.WriteFile(path, []byte("not a database at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := newKeeper(t, dir, time.Now, config.Budget{Day: []string{"$1"}})
	defer k.Begin("c", "t1", config.Budget{Day: []string{"$1"}})()
	title := llm.Request{Purpose: llm.PurposeTitle, Origin: llm.Origin{Chat: "c"}}
	if err := ask(t, k.Model(scripted(1), "m", prices()), title); err != nil {
		t.Fatal(err)
	}
	state := k.Check(t.Context(), "c")
	if len(state.Warnings) != 1 || !strings.Contains(state.Warnings[0], path) || strings.Count(state.Warnings[0], "not a database") != 1 {
		t.Errorf("%q", state.Warnings)
	}
}

// An amount above zero does not look like zero.
func TestDollars(t *testing.T) {
	for n, want := range map[float64]string{0: "$0.00", 0.00001: "$0.00001", 0.0001: "$0.0001", 0.25: "$0.2500", 3: "$3.00"} {
		if got := budget.Dollars(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}
