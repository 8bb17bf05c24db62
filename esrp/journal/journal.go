// Package journal records the engine's model and tool calls as ESRP requests and responses
// (docs/contracts/esrp.md, section 12): one chain of lines for all daemons of a user, and the
// bodies that the lines refer to by hash.
//
// It owns two folders. journal/ contains the segments (<first seq>.jsonl), head, which records the
// end of the chain, and lock. artifacts/sha256/ contains the bodies: messages, prompts, arguments,
// outputs, files before and after a call. Each body is a file named by its SHA-256, so that a history
// that is sent repeatedly is stored once. Lines contain no text of a conversation, so removing the
// bodies of a chat removes its content, and the chain stays valid.
//
// A line is the canonical JSON of {event_type, prev, record, seq}; prev is the SHA-256 of the
// previous line without its newline, and 64 zeros in the first line. To append, a process takes the
// lock, writes the bodies, describes the next line in head, and then writes the line. If the process
// is killed, the next one detects and removes an incomplete line, and continues. So the chain never
// breaks, and a change of any byte is detected. The one exception: if the last lines are removed and
// head is changed to match, that cannot be detected without a copy of the last hash.
//
// The caller only builds a record and queues it. One goroutine, which ends with Close, removes
// secrets and writes. A killed process loses the queued records, normally those of the last
// milliseconds. Close waits some seconds for the queue. It then stores the remaining records, and the
// chats that still have to be erased, in journal/pending, where the next process continues. After
// Sync, earlier records survive a crash of the machine once nothing was recorded for a quarter of a
// second. A record that cannot be written is lost, which is logged.
//
// The package makes no decisions about calls, and no call fails because of it.
package journal

import (
	"cmp"
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

// Options configure a Journal. The zero value is valid.
type Options struct {
	Clean       func(string) string // removes secrets from text; default: removes nothing
	Now         func() time.Time    // default: time.Now
	NewID       func() string       // UUIDs; default: random
	Log         *slog.Logger        // default: slog.Default
	Enabled     func() bool         // reports, at each call, whether it is recorded; default: true
	Limits      func() Limits       // called at each trim; default: no limits
	SegmentSize int64               // bytes; a segment that reaches it is sealed; default 8 MiB
}

// Limits are the limits for stored segments and bodies.
type Limits struct {
	Bytes int64         // of segments and bodies together; 0 means no limit
	Age   time.Duration // of sealed segments; 0 means no limit
}

// queueSize is the size of the queue. Callers block while it is full.
const queueSize = 1024

// maxUnsynced is the number of unsynced bodies at which the journal syncs without a request.
const maxUnsynced = 4096

// Journal records calls. It is safe for concurrent use.
type Journal struct {
	o         Options
	dir       atomic.Pointer[string]
	chats     chats
	announced announcedCalls

	erasing struct {
		mu  sync.Mutex
		ids []string // chats that this process was asked to erase and has not erased yet
	}

	mu          sync.RWMutex // guards the fields below; held for reading while sending
	jobs        chan func(*Chain)
	closed      bool
	done        chan struct{}
	flushNow    chan struct{}
	eraseSignal chan struct{} // signals that a chat is to be erased
	timeUp      chan struct{} // closed by Close after patience
	failed      atomic.Bool   // the last record was lost, which has been logged

	// Owned by the goroutine.
	dirty   bool            // a sync was requested
	pending *pendingRecords // records for which there was no time to append them; may be nil

	patience time.Duration // how long Close waits for the queue
}

// Close waits up to patience for queued records to be appended, and then up to lastPatience for the
// remaining ones to be stored for the next process.
const (
	patience     = 2 * time.Second
	lastPatience = 10 * time.Second
)

// New returns the journal below a state directory. It creates no files before the first record.
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
	o.Log = cmp.Or(o.Log, slog.Default())
	if o.Enabled == nil {
		o.Enabled = func() bool { return true }
	}
	if o.Limits == nil {
		o.Limits = func() Limits { return Limits{} }
	}
	j := &Journal{o: o, chats: chats{byID: map[string]*chat{}}, flushNow: make(chan struct{}, 1), eraseSignal: make(chan struct{}, 1), timeUp: make(chan struct{}), patience: patience}
	j.Move(state)
	return j
}

// Move changes the state directory. It has no effect once the journal is in use.
func (j *Journal) Move(state string) { j.dir.Store(&state) }

// submit queues a job for the writing goroutine, which it starts if necessary. It blocks while the
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
	j.jobs, j.done = make(chan func(*Chain), queueSize), make(chan struct{})
	c := At(*j.dir.Load())
	if j.o.SegmentSize > 0 {
		c.segmentSize = j.o.SegmentSize
	}
	c.timeUp = j.timeUp
	go func() {
		defer close(j.done)
		defer c.Close()
		j.runJobs(c)
	}()
}

// batchDelay is how long a record waits before it is built. Building it immediately would delay the
// recorded request by up to a millisecond.
const batchDelay = 5 * time.Millisecond

// syncDelay is how long nothing must have been recorded before a sync. It prevents a prompt from
// waiting for the disk.
const syncDelay = 250 * time.Millisecond

// runJobs runs jobs until Close.
func (j *Journal) runJobs(c *Chain) {
	j.runJob(c, j.finishPending) // of earlier processes
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
				j.runJob(c, job)
				if len(j.jobs) == 0 {
					break
				}
			}
			if !ok {
				j.runJob(c, j.finishWork)
				return
			}
		case <-j.eraseSignal:
			for range len(j.jobs) { // records of the chat may be queued
				if job, ok := <-j.jobs; ok {
					j.runJob(c, job)
				}
			}
			j.runJob(c, j.runErasures)
		case <-idle:
			j.sync(c)
		}
	}
}

// finishWork does the remaining work after the last job.
func (j *Journal) finishWork(c *Chain) {
	if j.pending != nil {
		if err := j.pending.finish(); err != nil {
			j.o.Log.Warn("cannot store the remaining records of the journal for the next start", "err", err)
		}
	}
	j.runErasures(c)
	j.sync(c)
}

// runErasures erases the chats that Erase was called for. Their records have been written by
// now. If another process has already erased such a chat and removed the request, it did not see
// these records, so runErasures writes the request again.
func (j *Journal) runErasures(c *Chain) {
	j.erasing.mu.Lock()
	ids := j.erasing.ids
	j.erasing.ids = nil
	j.erasing.mu.Unlock()
	for _, id := range ids {
		if _, err := os.Stat(c.erasurePath(id)); err == nil {
			continue
		}
		if err := c.requestErasure(id); err != nil {
			j.o.Log.Warn("cannot erase a chat from the journal", "chat", id, "err", err)
		}
	}
	if len(ids) > 0 && !c.timeIsUp() {
		j.finishPending(c)
	}
}

// finishPending does the pending work of this and other processes.
func (j *Journal) finishPending(c *Chain) {
	if err := c.finishPending(j.o.Now()); err != nil && !errors.Is(err, errTimeUp) {
		j.o.Log.Warn("cannot finish the pending work of the journal", "err", err)
	}
}

// waitForBatch waits for batchDelay, unless a caller is waiting for the journal.
func (j *Journal) waitForBatch() {
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.flushNow:
	}
}

// flush ends the current wait for a batch, or the next one.
func (j *Journal) flush() {
	select {
	case j.flushNow <- struct{}{}:
	default:
	}
}

func (j *Journal) sync(c *Chain) {
	if !j.dirty {
		return
	}
	j.dirty = false
	j.runJob(c, func(c *Chain) {
		if err := c.Sync(); err != nil && !errors.Is(err, errTimeUp) {
			j.o.Log.Warn("cannot sync the journal", "err", err)
		}
	})
}

// runJob runs a job and recovers from panics, which must not end the daemon.
func (j *Journal) runJob(c *Chain, job func(*Chain)) {
	defer func() {
		if p := recover(); p != nil {
			j.o.Log.Error("the journal panicked", "panic", p)
		}
	}()
	job(c)
}

// runAndWait queues a job and returns its error, or the cause if ctx ends first.
func (j *Journal) runAndWait(ctx context.Context, job func(*Chain) error) error {
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
// for all requests, when nothing has been recorded for syncDelay. Sync does nothing if this process
// has recorded nothing.
func (j *Journal) Sync() {
	j.mu.RLock()
	idle := j.jobs == nil
	j.mu.RUnlock()
	if !idle {
		j.submit(func(*Chain) { j.dirty = true })
	}
}

// Erase requests that the bodies of a chat and its subagents are removed, except those that other
// chats share, and that the removal is recorded. It stores the request on disk and does not wait
// for the removal; if this process exits first, the next one does it. Without a journal it does
// nothing.
func (j *Journal) Erase(chatID string) error {
	j.chats.forget(chatID)
	j.announced.forget(chatID)
	c := At(*j.dir.Load())
	j.mu.RLock()
	idle := j.jobs == nil
	j.mu.RUnlock()
	if _, err := os.Stat(c.dir); idle && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := c.requestErasure(chatID); err != nil {
		return fmt.Errorf("cannot erase the chat from the journal: %w", err)
	}
	if idle {
		j.start()
	}
	j.erasing.mu.Lock()
	j.erasing.ids = append(j.erasing.ids, chatID)
	j.erasing.mu.Unlock()
	select {
	case j.eraseSignal <- struct{}{}:
	default: // the pending signal covers this chat, too
	}
	j.flush()
	return nil
}

// Trim removes the oldest segments, and the bodies that only they refer to, until the limits are met.
// It waits for earlier jobs and for other processes until ctx ends.
func (j *Journal) Trim(ctx context.Context) error {
	err := j.runAndWait(ctx, func(c *Chain) error { return c.Trim(j.o.Limits(), j.o.Now()) })
	if errors.Is(err, errTimeUp) {
		return nil
	}
	return err
}

// Close writes the queued records and ends the goroutine. Records that cannot be appended within
// some seconds, for example because another process holds the lock, are stored for the next process.
func (j *Journal) Close() {
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if closed || j.done == nil {
		return
	}
	close(j.jobs)
	j.flush()
	if j.waitDone(j.patience) {
		return
	}
	close(j.timeUp)
	if !j.waitDone(lastPatience) {
		j.o.Log.Warn("records of the journal were lost at shutdown", "records", len(j.jobs))
	}
}

// waitDone waits up to limit for the end of the goroutine, and reports whether it has ended.
func (j *Journal) waitDone(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-j.done:
		return true
	case <-timer.C:
		return false
	}
}

// record is recordAs for an event that is known in advance.
func (j *Journal) record(event string, build func(*bodies) esrp.Value) {
	j.recordAs(func(b *bodies) (string, esrp.Value) { return event, build(b) })
}

// recordAs queues a record. build runs in the writing goroutine: it stores bodies and returns the
// record.
func (j *Journal) recordAs(build func(*bodies) (event string, record esrp.Value)) {
	j.submit(func(c *Chain) {
		err := errTimeUp
		if j.pending == nil && !c.timeIsUp() {
			err = c.append(j.o.Clean, build)
		}
		if errors.Is(err, errTimeUp) {
			err = j.storeForNext(c, build)
		}
		if len(c.unsynced) >= maxUnsynced {
			j.dirty = true
			j.sync(c)
		}
		if l := j.o.Limits(); err == nil && l.Bytes > 0 && c.bytesSinceTrim > l.Bytes/16 && !c.timeIsUp() {
			if err = c.Trim(l, j.o.Now()); errors.Is(err, errTimeUp) {
				err = nil
			}
		}
		switch {
		case err == nil:
			j.failed.Store(false)
		case !j.failed.Swap(true): // logged once, because a full disk fails every time
			j.o.Log.Warn("cannot write the journal", "err", err)
		}
	})
}

// storeForNext stores a record for the next process.
func (j *Journal) storeForNext(c *Chain, build func(*bodies) (event string, record esrp.Value)) (err error) {
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
