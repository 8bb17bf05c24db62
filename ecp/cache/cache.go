// Package cache stores the answers of agents and judges in a folder, so that repeating a question
// costs nothing.
//
// Guarantees: Get returns exactly the value that was stored under the same key; several processes
// may use one folder; unreadable entries count as missing. A key must include everything that the
// answer depends on. The package never removes entries; the folder can be deleted at any time.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxEntry bounds an entry, in bytes.
const maxEntry = 64 << 20

// Store is a folder with cached answers.
type Store struct{ dir string }

// Open returns the store in a folder, and creates the folder if necessary.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir}, nil
}

// path returns the path of the entry for a key.
func (s *Store) path(key string) string {
	sum := sha256.Sum256([]byte(key))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(s.dir, name[:2], name+".json")
}

// Get decodes the answer for a key into a pointer, and reports whether there was a valid one.
func (s *Store) Get(key string, into any) bool {
	raw, err := safeio.Read(s.path(key), maxEntry)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// Put stores an answer. It ignores errors: without the entry, the question is asked again.
func (s *Store) Put(key string, value any) {
	raw, err := json.Marshal(value)
	if err != nil || len(raw) > maxEntry {
		return
	}
	path := s.path(key)
	if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
		_ = safeio.Write(path, raw, 0o600)
	}
}

// judge returns stored answers, and asks another judge for missing ones.
type judge struct {
	next     grade.Judge
	store    *Store
	identity string

	mu    sync.Mutex     // guards asked
	asked map[string]int // how often each question was asked
}

// Judge returns a judge that caches the answers of next in s. identity distinguishes judges, and is
// part of the keys. Several votes, or attempts with the same text, repeat a question; each
// repetition has its own answer.
func Judge(next grade.Judge, s *Store, identity string) grade.CachingJudge {
	return &judge{next: next, store: s, identity: identity, asked: map[string]int{}}
}

// Ask implements grade.Judge.
func (j *judge) Ask(ctx context.Context, model, system, question string) (string, error) {
	answer, _, err := j.AskCached(ctx, model, system, question)
	return answer, err
}

// AskCached implements grade.CachingJudge.
func (j *judge) AskCached(ctx context.Context, model, system, question string) (answer string, cached bool, err error) {
	about := strings.Join([]string{"judge-1", j.identity, model, system, question}, "\x00")
	j.mu.Lock()
	j.asked[about]++
	key := about + "\x00" + strconv.Itoa(j.asked[about])
	j.mu.Unlock()
	if j.store.Get(key, &answer) {
		return answer, true, nil
	}
	if answer, err = j.next.Ask(ctx, model, system, question); err == nil {
		j.store.Put(key, answer)
	}
	return answer, false, err
}
