package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/remote"
)

// awaitStreams waits until so many streams are connected.
func (r *rig) awaitStreams(n int) {
	r.t.Helper()
	want := fmt.Sprintf("\n%d stream", n)
	for deadline := time.Now().Add(3 * time.Minute); !strings.Contains(r.face.Status(), want); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("not %d streams: %s", n, r.face.Status())
		}
	}
}

// delays has a chat stream pieces of text, and returns how much later than the editor a page was
// shown each, in ascending order.
func (r *rig) delays(page *events, chatID string, piece int) (delays []time.Duration) {
	r.t.Helper()
	var shown []time.Time // in the editor
	size := 0
	r.Watch(func(m fake.Message, at time.Time) {
		if m.Method == "chat/contentReceived" {
			size += len(text([]event{{name: "chat:content-received", data: string(m.Params)}}))
		}
		for len(shown) < size/piece {
			shown = append(shown, at)
		}
	})
	mark, from := r.Mark(), len(page.all())
	r.Call("chat/prompt", object{"chatId": chatID, "message": "go"})
	page.await(from, "chat:content-received", chatID, `"state":"finished"`)
	r.Await(mark, "the end", fake.Finished())
	r.Watch(nil)
	size = 0
	for _, e := range page.all()[from:] {
		size += len(text([]event{e}))
		for len(delays) < size/piece {
			delays = append(delays, e.at.Sub(shown[len(delays)]))
		}
	}
	slices.Sort(delays)
	return delays
}

// A client that reads slowly, and then not at all, delays no other one, needs little memory, and is
// disconnected. When it comes back, it gets what it missed.
func TestClientThatDoesNotRead(t *testing.T) { //nolint:paralleltest // it measures the process
	needs.Long(t)
	const piece, n = 1001, 6_000 // more than a socket buffers
	x := strings.Repeat("x", piece-1)
	long := fmt.Sprintf("  - steps: [{text: '%s ', repeat: %d, delay: 1ms}]\n", x, n-1)
	r := newRig(t, fmt.Sprintf("turns:\n%s  - steps: [{text: '%s '}]\n%s", long, x, long), nil, nil)
	second, _ := r.pair(remote.Watch)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	without := r.delays(page, "alone", piece)
	r.Call("chat/delete", object{"chatId": "alone"})
	from, _ := page.await(0, "chat:deleted", "alone")
	slow := r.rawStream(second)
	r.awaitStreams(2)
	r.Call("chat/prompt", object{"chatId": "c", "message": "short"}) // both pages are sent this completely
	page.await(from, "chat:content-received", `"state":"finished"`)
	var start bytes.Buffer // what the slow client reads with 1 KB/s
	reading := make(chan error, 1)
	go func() {
		for range 5 {
			if _, err := io.CopyN(&start, slow, 1<<10); err != nil {
				reading <- err
				return
			}
			time.Sleep(time.Second)
		}
		reading <- nil
	}()
	with := r.delays(page, "c", piece)
	if err := <-reading; err != nil {
		t.Fatal(err)
	}
	p99 := func(d []time.Duration) time.Duration { return d[len(d)*99/100] }
	t.Logf("the other page was shown the text after %s (p99) with the slow one, and after %s without", p99(with), p99(without))
	if got := len(text(page.all()[from:])); got != piece*n {
		t.Errorf("the page that reads was shown %d bytes, not %d", got, piece*n)
	}
	_, heap := usage(math.MaxInt)
	r.awaitStreams(1)
	_, heapAfter := usage(math.MaxInt)
	t.Logf("the slow page took %d KB", (int64(heap)-int64(heapAfter))>>10)
	if heap > heapAfter+1<<20 {
		t.Error("the slow page takes too much memory")
	}
	res, err := http.ReadResponse(bufio.NewReader(io.MultiReader(&start, slow)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	sent, _ := io.ReadAll(res.Body) // up to where it was cut off
	blocks := strings.Split(string(sent), "\n\n")
	var shown []event
	for _, block := range blocks[:len(blocks)-1] {
		var e event
		for line := range strings.Lines(block) {
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch key {
			case "event":
				e.name = value
			case "id":
				e.id = value
			case "data":
				e.data = value
			}
		}
		if e.name != "" {
			shown = append(shown, e)
		}
	}
	before := len(text(shown))
	if before == 0 || before >= piece*n {
		t.Fatalf("the page that does not read was sent %d bytes of the text", before)
	}
	late := r.events(second, shown[len(shown)-1].id)
	late.await(0, "session:connected", `"resumedChats":["c"]`)
	late.await(0, "chat:content-received", `"state":"finished"`)
	if got := before + len(text(late.all())); got != piece*n {
		t.Errorf("the page that does not read was shown %d bytes before and after, not %d", got, piece*n)
	}
}

// usage waits until at most limit goroutines are left, and returns how many there are and how large
// the heap is.
func usage(limit int) (goroutines int, heap uint64) {
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > limit && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), m.HeapAlloc
}

// Streams that end leave no goroutines and no memory.
func TestStreamsLeaveNothing(t *testing.T) { //nolint:paralleltest // it measures the process
	needs.Long(t)
	const rounds, devices, each = 6, 4, 4
	r := newRig(t, "turns: []\ndefault: {steps: [{text: '"+words(200)+"', delay: 1ms}]}\n", nil, nil)
	var tokens []string
	for range devices {
		token, _ := r.pair(remote.Watch)
		tokens = append(tokens, token)
	}
	round := func() {
		t.Helper()
		var pages []*events
		for _, token := range tokens {
			for range each {
				page := r.events(token, "")
				page.await(0, "session:connected")
				pages = append(pages, page)
			}
		}
		mark := r.Mark()
		r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
		r.Await(mark, "the end", fake.Finished())
		for _, page := range pages {
			page.await(0, "chat:content-received", "w199 ")
			page.close()
			page.list = nil
		}
		r.awaitStreams(0)
	}
	round()
	time.Sleep(time.Second) // what ends with the streams has ended
	goroutines, heap := usage(math.MaxInt)
	for range rounds {
		round()
	}
	const few, little = 5, 8 << 20
	goroutinesAfter, heapAfter := usage(goroutines + few)
	t.Logf("%d goroutines and %d KB, then %d and %d KB", goroutines, heap>>10, goroutinesAfter, heapAfter>>10)
	if goroutinesAfter > goroutines+few || heapAfter > heap+little {
		t.Errorf("%d streams left %d goroutines and %d KB", rounds*devices*each, goroutinesAfter-goroutines, (int64(heapAfter)-int64(heap))>>10)
	}
}

// awaitWords reads a stream until a turn has finished. It returns an error unless the stream shows
// n numbered words in order, each once.
func awaitWords(body io.Reader, n int) error {
	lines, next, rest := bufio.NewReader(body), 0, ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream ended after word %d: %w", next, err)
		}
		data, _ := strings.CutPrefix(line, "data: ")
		rest += text([]event{{name: "chat:content-received", data: data}})
		for {
			word, after, whole := strings.Cut(rest, " ")
			if !whole {
				break
			}
			if strings.TrimRight(word, "x") != fmt.Sprint("w", next) {
				return fmt.Errorf("%q is shown as word %d", word, next)
			}
			next, rest = next+1, after
		}
		if strings.Contains(data, `"state":"finished"`) {
			if next != n {
				return fmt.Errorf("%d words are shown, not %d", next, n)
			}
			return nil
		}
	}
}

// While 16 streams show a chat that grows by 200 deltas per second, neither goroutines nor memory
// grow. ECA_REMOTE_SOAK is how long the chat grows.
func TestStreamsDoNotGrow(t *testing.T) { //nolint:paralleltest // it measures the process
	needs.Long(t)
	const devices, each, pause, samples, size = 4, 4, 5 * time.Millisecond, 6, 1 << 20
	duration := 5 * time.Second
	if given := os.Getenv("ECA_REMOTE_SOAK"); given != "" {
		var err error
		if duration, err = time.ParseDuration(given); err != nil {
			t.Fatal(err)
		}
	}
	n := int(duration / pause)
	long := strings.ReplaceAll(words(n), " ", strings.Repeat("x", size/n)+" ")
	// The model waits less than a pause, because it also needs time to send a delta.
	r := newRig(t, fmt.Sprintf("turns:\n  - steps: [{text: '%s', delay: %s}]\n", long, pause*4/5), nil, nil)
	results := make(chan error, devices*each)
	for range devices {
		token, _ := r.pair(remote.Watch)
		for range each {
			res, err := r.client().Do(r.request(token, "GET", "/api/v1/events", nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = res.Body.Close() })
			go func() { results <- awaitWords(res.Body, n) }()
		}
	}
	r.awaitStreams(devices * each)
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	const few, little = 5, 8 << 20
	goroutines, heap, begun := math.MaxInt-few, uint64(0), time.Now()
	for i := range samples {
		time.Sleep(time.Until(begun.Add(duration / 50 * time.Duration(1+i*48/(samples-1))))) // soon after the start until shortly before the end
		r.Forget()                                                                           // what the editor of the test was shown
		goroutinesNow, heapNow := usage(goroutines + few)
		t.Logf("after %s: %d goroutines and %d KB", time.Since(begun).Round(time.Second/10), goroutinesNow, heapNow>>10)
		if i == 0 {
			goroutines, heap = goroutinesNow, heapNow
		} else if goroutinesNow > goroutines+few || heapNow > heap+little {
			t.Errorf("%d goroutines and %d KB, after %d and %d at the start", goroutinesNow, heapNow>>10, goroutines, heap>>10)
		}
	}
	for range devices * each {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	t.Logf("all of the %d words, %.0f per second, were shown after %s", n, float64(n)/time.Since(begun).Seconds(), time.Since(begun).Round(time.Second/10))
}

// A question that is answered in the editor is closed in all pages within a second, beside the time
// that any event takes.
func TestAnsweredQuestionIsClosedSoon(t *testing.T) {
	t.Parallel()
	r := newRig(t, asking, nil, object{"askQuestion": true})
	answered := make(chan struct{})
	r.Answer("chat/askQuestion", func(context.Context, json.RawMessage) (any, error) {
		<-answered
		return object{"answer": "B"}, nil
	})
	second, _ := r.pair(remote.Control)
	pages := []*events{r.events(r.token, ""), r.events(second, "")}
	for _, page := range pages {
		page.await(0, "session:connected")
	}
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	for _, page := range pages {
		page.await(0, "chat:ask-question", "Which?")
	}
	begun := time.Now()
	close(answered)
	for _, page := range pages {
		page.await(0, "chat:ask-question", `"cancelled":true`)
	}
	took := time.Since(begun)
	begun = time.Now()
	r.do("POST", "/trust", object{"trust": true})
	pages[0].await(0, "trust:updated")
	if other := time.Since(begun); took > time.Second+10*other {
		t.Errorf("the question was closed after %s; another event takes %s", took, other)
	}
}
