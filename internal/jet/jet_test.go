package jet_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/jet/embed"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testkit.IgnoreNATS()) }

// dial starts a server with a stream, a bucket of keys and a bucket of contents.
func dial(t *testing.T) (*jet.Conn, *embed.Server) {
	t.Helper()
	s, err := embed.Start(embed.Options{Name: "test", Dir: t.TempDir(), Token: "t"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c, err := jet.Dial(t.Context(), jet.Options{Token: "t", Server: s, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	used, err := c.Setup(t.Context(), jet.Layout{
		Streams: []jet.StreamSpec{{Name: "S", Subjects: []string{"s.>"}}}, KV: []string{"keys"}, Blobs: []jet.BlobsSpec{{Name: "blobs", MaxAge: time.Hour}},
	}, 0)
	if err != nil || used != 1 {
		t.Fatalf("%d replicas, %v", used, err)
	}
	return c, s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Of writers that append after the same message, one succeeds, and all the others get ErrConflict.
func TestAppend(t *testing.T) {
	needs.Long(t)
	c, _ := dial(t)
	s, err := c.Stream(t.Context(), "S")
	must(t, err)
	seq := uint64(0)
	for range 20 {
		var all sync.WaitGroup
		var mu sync.Mutex // guards won
		var won []uint64
		for range 8 {
			all.Go(func() {
				at, err := s.Append(t.Context(), jet.Message{Subject: "s.a." + rand.Text(), Header: map[string]string{"K": "v"}}, seq, "s.a.>")
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, at)
				} else if !errors.Is(err, jet.ErrConflict) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(won) != 1 || won[0] <= seq {
			t.Fatalf("%d succeeded after %d", won, seq)
		}
		seq = won[0]
	}
	last, err := s.Last(t.Context(), "s.a.>")
	if err != nil || last.Seq != seq || last.Header["K"] != "v" {
		t.Errorf("%+v, %v", last, err)
	}
	if _, err := s.Next(t.Context(), seq+1, "s.>"); !errors.Is(err, jet.ErrNotFound) {
		t.Error(err)
	}
	if _, err := s.Append(t.Context(), jet.Message{Subject: "s.b"}, 7, "s.b"); !errors.Is(err, jet.ErrConflict) {
		t.Errorf("after a message that does not exist: %v", err)
	}
}

// While two writers store the same contents and a third removes old ones, readers get the contents
// or an error, but no other bytes. The contents that are stored last are kept.
func TestWritersOfOneBlob(t *testing.T) {
	needs.Long(t)
	c, _ := dial(t)
	b, err := c.Blobs(t.Context(), "blobs")
	must(t, err)
	data := make([]byte, 300<<10)
	_, _ = rand.Read(data)
	digest := jet.Digest(data)
	store := func() error {
		return b.PutFresh(t.Context(), digest, 1, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	}
	must(t, store())
	before := time.Now()
	const rounds = 10
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range rounds {
				if err := store(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var seen, failed int
	all.Go(func() {
		for range 4 * rounds {
			got, err := b.GetBytes(t.Context(), digest, 2<<20)
			switch {
			case err != nil:
				failed++
			case !bytes.Equal(got, data):
				t.Errorf("GetBytes returned %d bytes that differ from the contents", len(got))
			default:
				seen++
			}
		}
	})
	all.Go(func() {
		for range rounds {
			if _, err := b.DeleteOlder(t.Context(), digest, before); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	t.Logf("%d readers got the contents, %d an error", seen, failed)
	if got, err := b.GetBytes(t.Context(), digest, 2<<20); err != nil || !bytes.Equal(got, data) {
		t.Errorf("afterwards: %d bytes, %v", len(got), err)
	}
	if removed, err := b.DeleteOlder(t.Context(), digest, time.Now().Add(time.Minute)); !removed || err != nil {
		t.Errorf("removed %v, %v", removed, err)
	}
	if _, err := b.Size(t.Context(), digest); !errors.Is(err, jet.ErrNotFound) {
		t.Error(err)
	}
}

// Large contents can be read in pieces from any offset, without holding all of them in memory.
func TestOpen(t *testing.T) {
	needs.Long(t)
	c, _ := dial(t)
	b, err := c.Blobs(t.Context(), "blobs")
	must(t, err)
	data := make([]byte, 64<<20)
	_, _ = rand.Read(data)
	digest, err := b.PutBytes(t.Context(), data)
	must(t, err)
	r, err := b.Open(t.Context(), digest)
	must(t, err)
	defer r.Close()
	_, err = r.Seek(-10, io.SeekEnd)
	must(t, err)
	end, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(end, data[len(data)-10:]) {
		t.Errorf("%x, %v", end, err)
	}
	_, err = r.Seek(0, io.SeekStart)
	must(t, err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, r)
	runtime.ReadMemStats(&after)
	// All that was allocated, freed or not: what is held at a time is much less. The server in this
	// process is counted, too.
	if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; err != nil || n != int64(len(data)) || allocated > 5*64 {
		t.Errorf("%d bytes with %d MiB of memory, %v", n, allocated, err)
	}
}

// Values change only from the revision that the writer knows, and watchers see each key.
func TestKV(t *testing.T) {
	c, _ := dial(t)
	kv, err := c.KV(t.Context(), "keys")
	must(t, err)
	must(t, kv.Update(t.Context(), "a", []byte("1"), 0))
	if err := kv.Update(t.Context(), "a", []byte("2"), 0); !errors.Is(err, jet.ErrConflict) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan string, 10)
	must(t, kv.Watch(ctx, "*", func(key string, value []byte) { seen <- key + string(value) }))
	_, revision, err := kv.Get(t.Context(), "a")
	must(t, err)
	must(t, kv.Update(t.Context(), "a", []byte("2"), revision))
	for _, want := range []string{"a1", "a2"} {
		if got := <-seen; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	must(t, kv.Delete(t.Context(), "a"))
	if _, _, err := kv.Get(t.Context(), "a"); !errors.Is(err, jet.ErrNotFound) {
		t.Error(err)
	}
	if _, err := c.KV(t.Context(), "others"); !errors.Is(err, jet.ErrNotFound) {
		t.Error(err)
	}
}

// A second server on the same folder is refused.
func TestFolderInUse(t *testing.T) {
	dir := t.TempDir()
	s, err := embed.Start(embed.Options{Dir: dir})
	must(t, err)
	defer s.Close()
	if _, err := embed.Start(embed.Options{Dir: dir}); !errors.Is(err, embed.ErrInUse) {
		t.Error(err)
	}
}
