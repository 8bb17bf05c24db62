package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/chat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a Store in memory that can fail.
type memory struct {
	Store        // what the log does not use
	mu           sync.Mutex
	events       []event.Event
	writtenAhead []event.Event
	writeErr     error

	failWriteAhead bool
	failingReads   int // how many further reads fail
}

func (m *memory) Append(_ context.Context, _ Meta, events []event.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writeErr != nil {
		return m.writeErr
	}
	m.events = append(m.events, events...)
	return nil
}

func (m *memory) WriteAhead(_ context.Context, _ string, pieces []event.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writeErr != nil || m.failWriteAhead {
		return errors.New("disk full")
	}
	m.writtenAhead = append(m.writtenAhead, pieces...)
	return nil
}

func (m *memory) Extend(ctx context.Context, _ string, events []event.Event) error {
	return m.Append(ctx, Meta{}, events)
}

func (m *memory) Events(_ context.Context, _ string, from event.Seq, limit int) ([]event.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failingReads > 0 {
		m.failingReads--
		return nil, errors.New("the disk is away")
	}
	var out []event.Event
	for _, e := range m.events {
		if e.Seq >= from && len(out) < limit {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m *memory) stored() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return render(m.events)
}

func (*memory) Meta(context.Context, string) (Meta, event.Seq, bool, error) {
	return Meta{}, 0, false, nil
}
func (*memory) Delete(context.Context, string) error { return nil }
func (*memory) Sync(context.Context) error           { return nil }
func (*memory) Lock(string) (func(), bool, error)    { return func() {}, true, nil }

// render merges deltas, so that it does not matter how they were cut.
func render(events []event.Event) string {
	var b strings.Builder
	last := event.Kind("")
	for _, e := range events {
		kind := event.KindOf(e.Body)
		text, isDelta := deltaText(e.Body)
		if !isDelta || kind != last {
			fmt.Fprintf(&b, "|%s:", kind)
		}
		switch body := e.Body.(type) {
		case event.Notice:
			text = body.Text
		case event.Progress:
			text = body.Text
		default:
		}
		b.WriteString(text)
		last = kind
	}
	return b.String()
}

func testLog(store Store) *Log {
	return New(store, Meta{ID: "c"}, 0, false, time.Now, slog.New(slog.NewTextHandler(io.Discard, nil)))
}

// Structural events are stored when Append returns; deltas within the flush delay,
// merged; progress never.
func TestLogDurability(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := testLog(m)
		defer l.Close()
		l.Append("t", event.Notice{Text: "a"}, event.Progress{Text: "p"})
		if got := m.stored(); got != "|notice:a" {
			t.Errorf("after a structural event: %s", got)
		}
		l.Append("t", event.TextDelta{Text: "x"})
		l.Append("t", event.TextDelta{Text: "y"})
		if got := m.stored(); got != "|notice:a" {
			t.Errorf("right after deltas: %s", got)
		}
		time.Sleep(flushDelay)
		synctest.Wait()
		if got := m.stored(); got != "|notice:a|text:xy" || len(m.events) != 2 {
			t.Errorf("after the delay: %s in %d events", got, len(m.events))
		}
		l.Append("t", event.TextDelta{Text: "z"})
		l.Append("t", event.Notice{Text: "b"})
		if got := m.stored(); got != "|notice:a|text:xyz|notice:b" {
			t.Errorf("after a structural event that follows deltas: %s", got)
		}
	})
}

// persisted returns the events that would be left if the process died now.
func (m *memory) persisted() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := slices.Clone(m.events)
	last := event.Seq(0)
	if len(out) > 0 {
		last = out[len(out)-1].Seq
	}
	for _, e := range m.writtenAhead {
		if e.Seq > last {
			out = append(out, e)
		}
	}
	return render(out)
}

// An event is persisted before any reader sees it, for all kinds of events except progress, and for a
// slow reader too.
func TestReadersSeeOnlyPersistedEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &memory{}
		l := testLog(m)
		defer l.Close()
		l.unmerged = rapid.Bool().Draw(rt, "separate")
		r := *l.Read(1)
		var seen []event.Event
		for i := range rapid.IntRange(1, 100).Draw(rt, "steps") {
			text := fmt.Sprintf("%d,", i)
			switch rapid.IntRange(0, 8).Draw(rt, "step") {
			case 0:
				l.Append("t", event.Notice{Text: text})
			case 1:
				l.Append("t", event.ReasoningDelta{ID: "r", Text: text})
			case 2:
				l.Append("t", event.Progress{Text: text}, event.TextDelta{Text: text})
			case 3:
				l.Flush()
			case 4, 5:
				l.Append("t", event.TextDelta{Text: text})
			default:
				e, ok, err := r.next(t.Context(), false)
				if err != nil {
					rt.Fatal(err)
				}
				if _, volatile := e.Body.(event.Progress); ok && !volatile {
					seen = append(seen, e)
				}
				if shown, persisted := render(seen), m.persisted(); !strings.HasPrefix(persisted, shown) {
					rt.Fatalf("shown %q\npersisted %q", shown, persisted)
				}
			}
		}
	})
}

// If deltas cannot be written ahead, they are stored before they are shown.
func TestFailedWriteAheadStoresDeltas(t *testing.T) {
	m := &memory{failWriteAhead: true}
	l := testLog(m)
	defer l.Close()
	l.Append("t", event.TextDelta{Text: "a"})
	r := *l.Read(1)
	if e, ok, err := r.next(t.Context(), false); !ok || err != nil || m.stored() != "|text:a" {
		t.Errorf("%v %t %v, stored %s", e, ok, err, m.stored())
	}
}

// The log repeats failed reads of the store, so its readers get all events and no error.
func TestReaderRepeatsFailedReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{failingReads: 5}
		l := testLog(m)
		var want []event.Event
		for i := range 2 * maxTail {
			b := event.Notice{Text: fmt.Sprint(i)}
			l.Append("t", b)
			want = append(want, event.Event{Body: b})
		}
		l.Close()
		var seen []event.Event
		for e, err := range l.Events(t.Context(), 1) {
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, e)
		}
		if render(seen) != render(want) {
			t.Errorf("%d events of %d", len(seen), len(want))
		}
	})
}

// While the store fails, readers get all events and one notice. When the store works again, the log
// stores the missing events.
func TestLogSurvivesFailingStore(t *testing.T) {
	m := &memory{writeErr: errors.New("disk full")}
	l := testLog(m)
	l.Append("t", event.Notice{Text: "a"})
	l.Append("t", event.Notice{Text: "b"})
	m.mu.Lock()
	m.writeErr = nil
	m.mu.Unlock()
	l.Append("t", event.Notice{Text: "c"})
	l.Close()
	var seen []event.Event
	for e := range l.Events(context.Background(), 1) {
		seen = append(seen, e)
	}
	got := render(seen)
	if strings.Count(got, "disk full") != 1 || !strings.HasPrefix(got, "|notice:a|notice:\n\nThis chat") || !strings.HasSuffix(got, "|notice:b|notice:c") {
		t.Errorf("readers saw %q", got)
	}
	if m.stored() != got {
		t.Errorf("stored %q, shown %q", m.stored(), got)
	}
}

// However slowly a reader reads, it gets every byte in order, and the log keeps only
// a bounded tail in memory.
func TestLogReadersLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &memory{}
		l := testLog(m)
		slow := rapid.IntRange(0, 400).Draw(rt, "slow reader starts after")
		var want []event.Event
		done := make(chan string)
		start := func() {
			go func() {
				var seen []event.Event
				for e := range l.Events(context.Background(), 1) {
					if _, ok := e.Body.(event.Progress); !ok {
						seen = append(seen, e)
					}
				}
				done <- render(seen)
			}()
		}
		n := rapid.IntRange(1, 600).Draw(rt, "events")
		for i := range n {
			if i == min(slow, n-1) {
				start()
			}
			var b event.Body
			switch rapid.IntRange(0, 9).Draw(rt, "kind") {
			case 0:
				b = event.Notice{Text: fmt.Sprint(i)}
			case 1:
				b = event.Progress{Text: fmt.Sprint(i)}
			case 2:
				b = event.ReasoningDelta{ID: "r", Text: fmt.Sprintf("r%d,", i)}
			case 3:
				b = event.TextDelta{Text: strings.Repeat("é", rapid.IntRange(1, 20_000).Draw(rt, "size"))}
			default:
				b = event.TextDelta{Text: fmt.Sprintf("t%d,", i)}
			}
			l.Append("t", b)
			if _, ok := b.(event.Progress); !ok {
				want = append(want, event.Event{Body: b})
			}
		}
		l.Close()
		if got := <-done; got != render(want) {
			rt.Fatalf("reader got %.300q\nwant %.300q", got, render(want))
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.tail) > maxTail {
			rt.Fatalf("%d entries in memory", len(l.tail))
		}
	})
}

// The log cuts a long text into pieces of valid UTF-8, which are small enough for clients that lose
// long messages.
func TestLogCutsPieces(t *testing.T) {
	l := testLog(&memory{})
	text := strings.Repeat("👋", 50_000)
	l.Append("t", event.TextDelta{Text: text})
	l.Close()
	got := ""
	for e := range l.Events(context.Background(), 1) {
		piece, _ := deltaText(e.Body)
		if len(piece) > maxPiece || strings.ToValidUTF8(piece, "?") != piece {
			t.Fatalf("a piece of %d bytes", len(piece))
		}
		got += piece
	}
	if got != text {
		t.Errorf("%d bytes of %d", len(got), len(text))
	}
}

// slowMeta returns the title that the chat had at the beginning of the call.
type slowMeta struct {
	*memory
	asked, answer chan struct{}
}

func (s slowMeta) Meta(context.Context, string) (Meta, event.Seq, bool, error) {
	close(s.asked)
	<-s.answer
	return Meta{ID: "c", Title: "old"}, 1, true, nil
}

// Loading stored events does not replace a title that was set in the meantime.
func TestLogRefreshKeepsNewTitle(t *testing.T) {
	s := slowMeta{&memory{}, make(chan struct{}), make(chan struct{})}
	l := testLog(s)
	defer l.Close()
	l.Append("t", event.Notice{Text: "a"})
	refreshed, set, named := make(chan error), make(chan struct{}), make(chan struct{})
	go func() {
		_, _, err := l.Refresh(context.Background())
		refreshed <- err
	}()
	<-s.asked
	go func() {
		defer close(named)
		l.SetMeta(func(m *Meta) { m.Title = "new" })
		close(set)
		l.Append("", event.TitleChanged{Title: "new"})
	}()
	<-set
	close(s.answer)
	if err := <-refreshed; err != nil {
		t.Error(err)
	}
	<-named
	if title := l.Meta().Title; title != "new" {
		t.Errorf("the title is %q", title)
	}
}

// slowCut removes events only after proceed is closed.
type slowCut struct {
	*memory
	asked, proceed chan struct{}
}

func (s slowCut) Cut(_ context.Context, _ Meta, _ event.Seq, marker event.Event) error {
	close(s.asked)
	<-s.proceed
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = []event.Event{marker}
	return nil
}

// A reader that reads while the store removes events gets the marker of the removal afterwards.
func TestReaderSeesMarkerOfCut(t *testing.T) {
	s := slowCut{&memory{}, make(chan struct{}), make(chan struct{})}
	l := testLog(s)
	defer l.Close()
	l.Append("t", event.Notice{Text: "a"})
	r := l.Read(1)
	if e, ok, err := r.Try(t.Context()); !ok || err != nil || e.Seq != 1 {
		t.Fatalf("%v %v %v", e, ok, err)
	}
	cut := make(chan error)
	go func() { cut <- l.Cut(1, event.Truncated{}) }()
	<-s.asked
	if e, ok, err := r.Try(t.Context()); ok || err != nil || r.Position() != 2 {
		t.Errorf("while events are removed: %v %v %v, position %d", e, ok, err, r.Position())
	}
	close(s.proceed)
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	e, ok, err := r.Try(t.Context())
	if _, marker := e.Body.(event.Truncated); !ok || err != nil || !marker {
		t.Errorf("after the removal: %v %v %v", e, ok, err)
	}
}
