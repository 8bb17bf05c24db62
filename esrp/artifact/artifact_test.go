package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // sha256 of "hello"

func put(t testing.TB, s *Store, data string) string {
	t.Helper()
	hash, err := s.Put(context.Background(), []byte(data))
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

// files returns the names of all files in dir except the lock file, and their size on disk.
func files(t testing.TB, dir string) (names []string, size int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		names, size = append(names, filepath.ToSlash(rel)), size+onDisk(info.Size())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names, size
}

func age(t testing.TB, path string, by time.Duration) {
	t.Helper()
	at := time.Now().Add(-by)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
}

func TestPutGet(t *testing.T) {
	dir, ctx := filepath.Join(t.TempDir(), "x", "artifacts"), context.Background()
	s, other := New(dir, Options{}), New(dir, Options{})
	if _, err := os.Stat(filepath.Dir(dir)); err == nil {
		t.Error("New made the folder")
	}
	if _, err := s.Get(ctx, hello); !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty store: %v", err)
	}
	if n, freed, err := s.Collect(ctx, nil, 0); n != 0 || freed != 0 || err != nil {
		t.Errorf("an empty store: %d %d %v", n, freed, err)
	}
	if got := put(t, s, "hello"); got != hello || Hash([]byte("hello")) != hello {
		t.Errorf("hash %s", got)
	}
	put(t, s, "hello")
	put(t, other, "hello")
	if names, _ := files(t, dir); len(names) != 1 || names[0] != hello[:2]+"/"+hello[2:] {
		t.Errorf("files: %v", names)
	}
	if data, err := other.Get(ctx, hello); string(data) != "hello" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := s.Get(ctx, put(t, s, "")); len(data) != 0 || err != nil {
		t.Errorf("empty: %q, %v", data, err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]fs.FileMode{s.path(hello): 0o600, filepath.Dir(s.path(hello)): 0o700, dir: 0o700, filepath.Dir(dir): 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	_, putErr := s.Put(stopped, []byte("new"))
	_, getErr := s.Get(stopped, hello)
	_, _, collectErr := s.Collect(stopped, nil, 0)
	for _, err := range []error{putErr, getErr, collectErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

func TestMalformedHash(t *testing.T) {
	dir := t.TempDir()
	s := New(filepath.Join(dir, "a"), Options{})
	put(t, s, "hello")
	if err := os.WriteFile(filepath.Join(dir, "secret"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, hash := range []string{
		"", "2c", hello[:63], hello + "0", strings.ToUpper(hello), "../secret", hello[:2] + "/" + hello[2:],
		"../" + strings.Repeat("a", 61), strings.Repeat("é", 32), strings.Repeat("a", 63) + "\x00",
	} {
		if _, err := s.Get(context.Background(), hash); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", hash, err)
		}
	}
}

// Damage is reported, and another Put repairs it.
func TestDamagedItem(t *testing.T) {
	ctx := context.Background()
	s := New(t.TempDir(), Options{MaxItem: 100})
	path := s.path(put(t, s, "hello"))
	for _, damage := range []string{"", "hell", "hellO", strings.Repeat("hello", 10)} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if data, err := s.Get(ctx, hello); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%q: got %q, %v", damage, data, err)
		}
		put(t, s, "hello")
		if data, err := s.Get(ctx, hello); string(data) != "hello" || err != nil {
			t.Errorf("%q: got %q, %v after the repair", damage, data, err)
		}
	}
	if err := os.WriteFile(path, make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, hello); !errors.Is(err, ErrTooLarge) {
		t.Errorf("huge: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(ctx, hello); !errors.Is(err, ErrCorrupt) {
		t.Errorf("folder: %v", err)
	}
	_, err := s.Put(ctx, []byte("hello"))
	if names, _ := files(t, s.dir); err == nil || len(names) > 0 {
		t.Errorf("put over a folder: %v; files left: %v", err, names)
	}
}

func TestPutRefuses(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		quota, maxItem int64
		size           int
		want           error
	}{
		{1 << 20, 10, 10, nil},
		{1 << 20, 10, 11, ErrTooLarge},
		{2 * block, 1 << 20, 2 * block, nil},
		{2*block + block/2, 1 << 20, 2*block + 1, ErrTooLarge},
		{block - 1, 10, 0, ErrFull},
	} {
		dir := t.TempDir()
		_, err := New(dir, Options{Quota: c.quota, MaxItem: c.maxItem}).Put(ctx, make([]byte, c.size))
		if !errors.Is(err, c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if names, _ := files(t, dir); (len(names) > 0) != (c.want == nil) {
			t.Errorf("%+v: files %v", c, names)
		}
	}
	occupied := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(occupied, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(occupied, Options{}).Put(ctx, nil); err == nil {
		t.Error("Put accepted a file in place of the store's folder")
	}
}

func TestCollect(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := New(dir, Options{})
	const day = 24 * time.Hour
	for name, old := range map[string]time.Duration{"kept": 9 * day, "old": 9 * day, "again": 9 * day, "young": time.Hour, "repaired": 9 * day} {
		age(t, s.path(put(t, s, name)), old)
	}
	put(t, s, "again") // now the item counts as new
	if err := os.WriteFile(s.path(Hash([]byte("repaired"))), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "repaired") // this item, too
	// Files that are not items are left alone, but files of dead writers are removed.
	foreign := []string{"README", "aa/short", "ab/" + strings.Repeat("X", 62), "other/" + strings.Repeat("a", 59), "tmp/put-now"}
	for _, name := range append(foreign, "tmp/put-dead") {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if name != "tmp/put-now" {
			age(t, path, 9*day)
		}
	}
	asked := map[string]bool{}
	keep := func(hash string) bool { asked[hash] = true; return hash == Hash([]byte("kept")) }
	removed, freed, err := s.Collect(ctx, keep, 7*day)
	if removed != 1 || freed != block || err != nil || len(asked) != 2 {
		t.Errorf("removed %d, freed %d, asked for %d, %v", removed, freed, len(asked), err)
	}
	for name, want := range map[string]error{"kept": nil, "old": ErrNotFound, "again": nil, "young": nil, "repaired": nil} {
		if _, err := s.Get(ctx, Hash([]byte(name))); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "tmp/put-dead")); err == nil {
		t.Error("Collect did not remove the file of a dead writer")
	}
	if removed, _, err := s.Collect(ctx, nil, 0); removed != 4 || err != nil {
		t.Errorf("nothing kept: %d, %v", removed, err)
	}
}

// The quota takes precedence over keep. The oldest items are removed first, and no more than
// necessary.
func TestCollectQuota(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	s := New(dir, Options{})
	for i := range 10 {
		age(t, s.path(put(t, s, fmt.Sprint(i))), time.Duration(i)*time.Hour)
	}
	small := New(dir, Options{Quota: 6*block + 1})
	removed, freed, err := small.Collect(ctx, func(string) bool { return true }, 100*time.Hour)
	if removed != 4 || freed != 4*block || err != nil {
		t.Errorf("removed %d, freed %d, %v", removed, freed, err)
	}
	for i := range 10 {
		if _, err := s.Get(ctx, Hash([]byte(fmt.Sprint(i)))); (err == nil) != (i < 6) {
			t.Errorf("item of %d hours: %v", i, err)
		}
	}
}

// An item that cannot be removed does not stop the others.
func TestCollectContinuesAfterError(t *testing.T) {
	s := New(t.TempDir(), Options{})
	stuck := put(t, s, "a")
	put(t, s, "b")
	// A folder with content, as old as the item, takes its place: even root cannot remove it.
	swap := func(hash string) (keep bool) {
		if path := s.path(hash); hash == stuck {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "full"), 0o700), os.Chtimes(path, time.Time{}, info.ModTime())); err != nil {
				t.Fatal(err)
			}
		}
		return false
	}
	if removed, _, err := s.Collect(context.Background(), swap, -time.Hour); removed != 1 || err == nil {
		t.Errorf("removed %d, %v", removed, err)
	}
	if _, err := os.Stat(filepath.Join(s.path(stuck), "full")); err != nil {
		t.Error(err)
	}
}

// After every Put the quota holds, the item exists, and so do most of the earlier ones.
func TestPutHoldsQuota(t *testing.T) {
	needs.Long(t)
	ctx, dir := context.Background(), t.TempDir()
	now := time.Now()
	const quota = 40 * block
	s := New(dir, Options{Quota: quota, Now: func() time.Time { now = now.Add(time.Second); return now }})
	var hashes []string
	for i := range 300 {
		data := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 1+(i*997)%(2*block))
		hash := put(t, s, string(data))
		hashes = append(hashes, hash)
		if _, size := files(t, dir); size > quota {
			t.Fatalf("after %d: %d bytes", i, size)
		}
		for _, h := range hashes[max(0, len(hashes)-8):] {
			if _, err := s.Get(ctx, h); err != nil {
				t.Fatalf("after %d: %v", i, err)
			}
		}
	}
	put(t, s, strings.Repeat("x", quota)) // the largest possible item
	if names, size := files(t, dir); len(names) != 1 || size != quota {
		t.Errorf("%d files, %d bytes", len(names), size)
	}
}

// Processes that share a folder soon notice each other's items.
func TestQuotaIsShared(t *testing.T) {
	dir := t.TempDir()
	const quota, writers = 64 * block, 4
	var stores []*Store
	for range writers {
		stores = append(stores, New(dir, Options{Quota: quota}))
	}
	most := int64(0)
	for i := range 200 {
		put(t, stores[i%writers], fmt.Sprint(i))
		_, size := files(t, dir)
		most = max(most, size)
	}
	if limit := int64(quota + (writers-1)*quota/16); most > limit || most < quota {
		t.Errorf("%d bytes at most, want %d to %d", most, quota, limit)
	}
}

// Only the first Put of a process walks the folder. The test notices a walk because it removes the
// file of a dead writer.
func TestPutDoesNotWalk(t *testing.T) {
	s := New(t.TempDir(), Options{})
	put(t, s, "1")
	dead := filepath.Join(s.dir, "tmp", "put-dead")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	age(t, dead, 48*time.Hour)
	put(t, s, "2")
	if _, err := os.Stat(dead); err != nil {
		t.Error("the second Put walked the folder")
	}
	put(t, New(s.dir, Options{}), "3")
	if _, err := os.Stat(dead); err == nil {
		t.Error("the first Put of another process did not walk, or its walk no longer removes such files")
	}
}

// A Put finds an old item, and before it can refresh it, another process judges it to be old.
func TestCollectDuringPut(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		ctx, others := context.Background(), New(dir, Options{})
		age(t, others.path(put(t, others, "hello")), 48*time.Hour)
		var wg sync.WaitGroup
		collect := func() {
			if removed, _, err := others.Collect(ctx, nil, 24*time.Hour); removed != 0 || err != nil {
				t.Errorf("removed %d, %v", removed, err)
			}
		}
		put(t, New(dir, Options{Now: func() time.Time {
			wg.Go(collect)
			synctest.Wait() // until it has removed the item, or waits for the Put
			return time.Now()
		}}), "hello")
		wg.Wait()
		if _, err := others.Get(ctx, hello); err != nil {
			t.Error(err)
		}
	})
}

// An item exists once Put has returned, even while other processes remove old items.
func TestPutWhileCollecting(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	const rounds, items = 20, 20
	for range rounds {
		writer, others := New(dir, Options{}), New(dir, Options{})
		for i := range items {
			age(t, writer.path(put(t, writer, fmt.Sprint(i))), 48*time.Hour)
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if _, _, err := others.Collect(ctx, nil, 24*time.Hour); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range items {
			wg.Go(func() {
				hash, err := writer.Put(ctx, []byte(fmt.Sprint(i)))
				if err != nil {
					t.Error(err)
				}
				if _, err := writer.Get(ctx, hash); err != nil {
					t.Errorf("gone after it was put: %v", err)
				}
			})
		}
		wg.Wait()
	}
}

// BenchmarkPut compares a Put into a store of many items with the floor: writing and renaming one
// file. first is the first Put of a process, which walks the folder.
func BenchmarkPut(b *testing.B) {
	const items, size = 10_000, 8 << 10
	dir, floor := b.TempDir(), b.TempDir()
	s, n := New(dir, Options{}), 0
	data := func() []byte {
		n++
		return append(make([]byte, size), fmt.Sprint(n)...)
	}
	for range items {
		put(b, s, string(data()))
	}
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			d := data()
			temp := filepath.Join(floor, "temp")
			if err := errors.Join(os.WriteFile(temp, d, 0o600), os.Rename(temp, filepath.Join(floor, Hash(d)))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("put", func(b *testing.B) {
		for b.Loop() {
			put(b, s, string(data()))
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			put(b, New(dir, Options{}), string(data()))
		}
	})
}
