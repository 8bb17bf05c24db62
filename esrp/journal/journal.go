// Package journal records the engine's calls of models and tools as ESRP requests and responses
// (contract 12): one chain of lines for all daemons of a user, and the contents that the lines
// refer to by hash.
//
// It owns two folders. journal/ contains the segments (<first seq>.jsonl), head, which records the
// end of the chain, and lock. artifacts/sha256/ contains the bodies: messages, prompts, arguments,
// outputs, files before and after a call. Each is a file named by its SHA-256, so that a history
// that is sent repeatedly is stored once. Lines contain no text of a conversation: removing a
// chat's bodies removes its content, and the chain stays valid.
//
// A line is the canonical JSON of {event_type, prev, record, seq}; prev is the SHA-256 of the
// previous line without its newline, and 64 zeros in the first line. To append, a process takes the
// lock, writes the bodies, records the coming line in head, and then writes the line. So the next
// process recognizes the remains of a killed one, removes an incomplete line and continues: the
// chain never breaks, and no byte of it can change unnoticed. If the end of a chain is removed
// together with the last state of head, that cannot be detected; to detect it, keep the last hash
// elsewhere.
//
// The caller only builds a record and queues it. One goroutine, which ends with Close, removes
// secrets and writes. A killed process loses the queued records, normally those of some
// milliseconds. A process that ends waits some seconds for the queue. It notes the remaining
// records, and the chats that still have to be erased, in journal/pending; the next process
// continues there. After Sync, earlier records survive a crash of the machine once nothing was
// recorded for a quarter of a second. A record that cannot be written is logged and lost.
//
// The package makes no decisions about calls, and no call fails because of it.
package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Options of a Journal. All may be left empty.
type Options struct {
	Clean       func(string) string // removes secrets; default: removes nothing
	Now         func() time.Time    // default: time.Now
	NewID       func() string       // UUIDs; default: random
	Log         *slog.Logger        // default: slog.Default
	Enabled     func() bool         // called for each call; default: yes
	Limits      func() Limits       // called at each trim; default: no limits
	SegmentSize int64               // bytes; a segment that reaches it is sealed; default 8 MiB
}

// Limits limit what is kept.
type Limits struct {
	Bytes int64         // of segments and bodies together; 0 means no limit
	Age   time.Duration // of sealed segments; 0 means no limit
}

// queued is how many records may wait; further callers wait.
const queued = 1024

// maxUnsynced is how many bodies may be unsynced if no caller requests a sync.
const maxUnsynced = 4096

// Journal records calls. It is safe for concurrent use.
type Journal struct {
	o      Options
	dir    atomic.Pointer[string]
	chats  chats
	judged judgements

	erasing struct {
		mu  sync.Mutex
		ids []string // chats that this process noted and has not erased yet
	}

	mu     sync.RWMutex // guards the fields below; held for reading while sending
	jobs   chan func(*Chain)
	closed bool
	done   chan struct{}
	hurry  chan struct{}
	erase  chan struct{} // a chat is to be erased
	late   chan struct{} // closed by Close when it has waited long enough
	failed atomic.Bool   // a record was lost, which has been logged

	// Owned by the goroutine.
	dirty   bool            // a caller wants the written records synced
	pending *pendingRecords // records that there was no time to append; nil until there are some

	patience time.Duration // how long Close waits for the queue
}

// Close waits for patience until queued records are appended, and then for lastPatience until the
// rest are noted for the next process.
const (
	patience     = 2 * time.Second
	lastPatience = 10 * time.Second
)

// New returns the journal below a state directory. It creates nothing before the first record.
func New(state string, o Options) *Journal {
	if o.Clean == nil {
		o.Clean = func(s string) string { return s }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Enabled == nil {
		o.Enabled = func() bool { return true }
	}
	if o.Limits == nil {
		o.Limits = func() Limits { return Limits{} }
	}
	j := &Journal{o: o, chats: chats{of: map[string]*chat{}}, hurry: make(chan struct{}, 1), erase: make(chan struct{}, 1), late: make(chan struct{}), patience: patience}
	j.Move(state)
	return j
}

// Move changes the state directory. It has no effect once the journal is in use.
func (j *Journal) Move(state string) { j.dir.Store(&state) }

// submit queues work for the writing goroutine, and starts it if necessary. It waits while the
// queue is full. After Close it does nothing and returns false.
func (j *Journal) submit(job func(*Chain)) bool {
	j.mu.RLock()
	if j.jobs == nil && !j.closed {
		j.mu.RUnlock()
		j.start()
		j.mu.RLock()
	}
	defer j.mu.RUnlock()
	if j.closed {
		return false
	}
	j.jobs <- job
	return true
}

func (j *Journal) start() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.jobs != nil || j.closed {
		return
	}
	j.jobs, j.done = make(chan func(*Chain), queued), make(chan struct{})
	c := At(*j.dir.Load())
	if j.o.SegmentSize > 0 {
		c.segmentSize = j.o.SegmentSize
	}
	c.late = j.late
	go func() {
		defer close(j.done)
		defer c.Close()
		j.write(c)
	}()
}

// batchDelay is how long a record waits before it is built. Without the wait, building it took up to a
// millisecond away from the request that is recorded.
const batchDelay = 5 * time.Millisecond

// syncDelay is how long nothing must be recorded before a sync, so that the next prompt does not
// wait for the disk.
const syncDelay = 250 * time.Millisecond

// write runs jobs until Close.
func (j *Journal) write(c *Chain) {
	j.do(c, j.finishPending) // left by an earlier process
	for {
		var idle <-chan time.Time
		if j.dirty {
			idle = time.After(syncDelay)
		}
		select {
		case job, ok := <-j.jobs:
			if ok {
				j.waitForBatch()
			}
			for ; ok; job, ok = <-j.jobs {
				j.do(c, job)
				if len(j.jobs) == 0 {
					break
				}
			}
			if !ok {
				j.do(c, j.end)
				return
			}
		case <-j.erase:
			for range len(j.jobs) { // they may belong to the chat
				if job, ok := <-j.jobs; ok {
					j.do(c, job)
				}
			}
			j.do(c, j.eraseNoted)
		case <-idle:
			j.sync(c)
		}
	}
}

// end does the remaining work after the last job.
func (j *Journal) end(c *Chain) {
	if j.pending != nil {
		if err := j.pending.finish(); err != nil {
			j.o.Log.Warn("cannot keep the rest of the journal for the next start", "err", err)
		}
	}
	j.eraseNoted(c)
	j.sync(c)
}

// eraseNoted erases the chats that Erase noted; their records have been written by now. If another
// process has erased such a chat and removed the note, it did not see these records, so the chat is
// noted again.
func (j *Journal) eraseNoted(c *Chain) {
	j.erasing.mu.Lock()
	ids := j.erasing.ids
	j.erasing.ids = nil
	j.erasing.mu.Unlock()
	for _, id := range ids {
		if _, err := os.Stat(c.erasure(id)); err == nil {
			continue
		}
		if err := c.noteErasure(id); err != nil {
			j.o.Log.Warn("cannot erase a chat from the journal", "chat", id, "err", err)
		}
	}
	if len(ids) > 0 && !c.isLate() {
		j.finishPending(c)
	}
}

// finishPending does pending work of this and other processes.
func (j *Journal) finishPending(c *Chain) {
	if err := c.finishPending(j.o.Now()); err != nil && !errors.Is(err, errLate) {
		j.o.Log.Warn("cannot finish pending work of the journal", "err", err)
	}
}

// waitForBatch leaves the processors to the recorded call for a moment, unless a caller is waiting.
func (j *Journal) waitForBatch() {
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.hurry:
	}
}

// flush ends the current wait for a batch, or the next one.
func (j *Journal) flush() {
	select {
	case j.hurry <- struct{}{}:
	default:
	}
}

func (j *Journal) sync(c *Chain) {
	if !j.dirty {
		return
	}
	j.dirty = false
	j.do(c, func(c *Chain) {
		if err := c.Sync(); err != nil && !errors.Is(err, errLate) {
			j.o.Log.Warn("the journal could not be synced", "err", err)
		}
	})
}

// do runs one job and recovers from panics, which must not end the daemon.
func (j *Journal) do(c *Chain, job func(*Chain)) {
	defer func() {
		if p := recover(); p != nil {
			j.o.Log.Error("the journal panicked", "panic", p)
		}
	}()
	job(c)
}

// wait runs a job in its turn and returns its error, or the cause if ctx ends first.
func (j *Journal) wait(ctx context.Context, job func(*Chain) error) error {
	result := make(chan error, 1)
	if !j.submit(func(c *Chain) {
		var err error
		defer func() { result <- err }()
		err = job(c)
	}) {
		return nil
	}
	j.flush()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sync requests that all earlier records survive a crash of the machine. The disk is synced once
// for all requests, as soon as nothing was recorded for a moment. A journal without records is left
// alone.
func (j *Journal) Sync() {
	j.mu.RLock()
	idle := j.jobs == nil
	j.mu.RUnlock()
	if !idle {
		j.submit(func(*Chain) { j.dirty = true })
	}
}

// Erase removes the bodies of a chat and its subagents, except those that other chats share, and
// records that. It does not wait for the queue: it notes the chat on disk, so that the next process
// erases it if this one ends first. Without any records it does nothing.
func (j *Journal) Erase(chatID string) error {
	j.chats.forget(chatID)
	j.judged.forget(chatID)
	c := At(*j.dir.Load())
	j.mu.RLock()
	idle := j.jobs == nil
	j.mu.RUnlock()
	if _, err := os.Stat(c.dir); idle && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := c.noteErasure(chatID); err != nil {
		return fmt.Errorf("cannot remove the chat's texts from the journal: %w", err)
	}
	if idle {
		j.start()
	}
	j.erasing.mu.Lock()
	j.erasing.ids = append(j.erasing.ids, chatID)
	j.erasing.mu.Unlock()
	select {
	case j.erase <- struct{}{}:
	default: // the pending signal covers this chat, too
	}
	j.flush()
	return nil
}

// Trim removes the oldest sealed segments, and the bodies that only they refer to, until the limits
// are met. It waits for its turn, which another process can delay, until ctx ends.
func (j *Journal) Trim(ctx context.Context) error {
	err := j.wait(ctx, func(c *Chain) error { return c.Trim(j.o.Limits(), j.o.Now()) })
	if errors.Is(err, errLate) {
		return nil
	}
	return err
}

// Close writes the queued records and ends the goroutine. Records that cannot be appended within
// some seconds, for example because another process holds the lock, are noted for the next process.
func (j *Journal) Close() {
	j.mu.Lock()
	was := j.closed
	j.closed = true
	j.mu.Unlock()
	if was || j.done == nil {
		return
	}
	close(j.jobs)
	j.flush()
	if j.isDone(j.patience) {
		return
	}
	close(j.late)
	if !j.isDone(lastPatience) {
		j.o.Log.Warn("the journal could not be written before the end", "records", len(j.jobs))
	}
}

// isDone waits for the end of the goroutine.
func (j *Journal) isDone(most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
		return false
	}
}

// record queues a record of a known event. See recordAs.
func (j *Journal) record(event string, build func(*bodies) esrp.Value) {
	j.recordAs(func(b *bodies) (string, esrp.Value) { return event, build(b) })
}

// recordAs queues a record. build runs in the writing goroutine: it stores bodies and returns the
// record.
func (j *Journal) recordAs(build func(*bodies) (event string, record esrp.Value)) {
	j.submit(func(c *Chain) {
		err := errLate
		if j.pending == nil && !c.isLate() {
			err = c.append(j.o.Clean, build)
		}
		if errors.Is(err, errLate) {
			err = j.note(c, build)
		}
		if len(c.unsynced) >= maxUnsynced {
			j.dirty = true
			j.sync(c)
		}
		if l := j.o.Limits(); err == nil && l.Bytes > 0 && c.added > l.Bytes/16 && !c.isLate() {
			if err = c.Trim(l, j.o.Now()); errors.Is(err, errLate) {
				err = nil
			}
		}
		switch {
		case err == nil:
			j.failed.Store(false)
		case !j.failed.Swap(true): // once, because a full disk fails each time
			j.o.Log.Warn("cannot write the journal", "err", err)
		}
	})
}

// note keeps a record for the next process.
func (j *Journal) note(c *Chain, build func(*bodies) (event string, record esrp.Value)) (err error) {
	if j.pending == nil {
		if j.pending, err = c.newPendingRecords(j.id().String()); err != nil {
			return err
		}
	}
	return j.pending.add(c, j.o.Clean, build)
}

// id generates a request id.
func (j *Journal) id() esrp.UUID {
	text := j.o.NewID()
	if id, err := esrp.ParseUUID(text); err == nil {
		return id
	}
	return esrp.DerivedUUID(text)
}
