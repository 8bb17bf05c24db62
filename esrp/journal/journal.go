// Package journal records what the engine asks of models and tools, as ESRP requests and
// responses (contract 12): one chain of lines for all daemons of a user, and the contents
// that the lines name by their hash.
//
// It owns two folders. journal/ has the segments (<first seq>.jsonl), head, which says where
// the chain ends, and lock. artifacts/sha256/ has the bodies: messages, prompts, arguments,
// outputs, files before and after, each in a file named by its SHA-256, so that a history
// that is sent again and again is stored once. Lines have no text of a conversation in them:
// who removes a chat's bodies has removed what was said, and the chain still holds.
//
// A line is the canonical JSON of {event_type, prev, record, seq}; prev is the SHA-256 of the
// line before without its newline, and 64 zeros in the first. Whoever appends holds the lock,
// writes the bodies, then into head which line comes, then the line. So what a killed process
// leaves is known to the next one, which cuts a torn line off and goes on: the chain never
// breaks, and no byte of it can be changed unseen. The end of a chain that somebody cuts off
// together with head's last state is not missed; who needs that keeps the last hash elsewhere.
//
// Recording costs the caller the making of a record and a place in a queue; one goroutine,
// which ends with Close, removes secrets and writes. A process that is killed loses what is
// in the queue, normally some milliseconds. One that ends waits for the queue for some seconds and
// notes the rest, and the chats that are still to be erased, in journal/pending; the next process
// goes on there. After Sync, what was recorded before survives a
// crash of the machine as soon as nothing was recorded for a quarter of a second. A record that can not be written is told to the log, and lost.
//
// The package decides nothing about calls, and no call fails because of it.
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
	Clean       func(string) string // removes secrets; default: nothing is removed
	Now         func() time.Time    // default: time.Now
	NewID       func() string       // UUIDs; default: random
	Log         *slog.Logger        // default: slog.Default
	Enabled     func() bool         // asked at each call; default: yes
	Limits      func() Limits       // asked at each trim; default: none
	SegmentSize int64               // bytes; a segment that has reached it is sealed; default 8 MiB
}

// Limits say how much is kept.
type Limits struct {
	Bytes int64         // of segments and bodies together; 0 is no limit
	Age   time.Duration // of sealed segments; 0 is no limit
}

// queued is how many records may wait; more make the caller wait.
const queued = 1024

// maxUnsynced is how many bodies may be there that the disk was not asked to sync, if nobody
// wants it.
const maxUnsynced = 4096

// Journal records calls. It is safe for concurrent use.
type Journal struct {
	o      Options
	dir    atomic.Pointer[string]
	chats  chats
	judged judgements

	erasing struct {
		mu  sync.Mutex
		ids []string // chats that this process noted and did not erase yet
	}

	mu     sync.RWMutex // guards what follows; held for reading while sending
	jobs   chan func(*Chain)
	closed bool
	done   chan struct{}
	hurry  chan struct{}
	erase  chan struct{} // a chat is to be erased
	late   chan struct{} // closed by Close when it has waited long enough
	failed atomic.Bool   // a record was lost, which has been told

	// Owned by the goroutine.
	dirty   bool            // somebody wants what was written to be synced
	pending *pendingRecords // what there was no time to append; nil until there is such

	patience time.Duration // how long Close waits for the queue
}

// Close waits so long for what is queued to be appended, and then so long for the rest to be noted
// for the next process.
const (
	patience     = 2 * time.Second
	lastPatience = 10 * time.Second
)

// New returns the journal below a state directory. Nothing is made before the first record.
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

// Move says where to record from now on. It has no effect on a journal that has begun.
func (j *Journal) Move(state string) { j.dir.Store(&state) }

// submit queues work for the goroutine that writes, which it starts if need be. It waits
// while the queue is full; after Close it does nothing and returns false.
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

// behind is how long a record waits for the processors: made at once, it took up to a
// millisecond from the request that it is of.
const behind = 5 * time.Millisecond

// quiet is how long nothing is recorded before the disk is asked to sync: the next prompt
// must not wait for that.
const quiet = 250 * time.Millisecond

// write runs jobs until Close.
func (j *Journal) write(c *Chain) {
	j.do(c, j.finishPending) // of a process that ended before
	for {
		var idle <-chan time.Time
		if j.dirty {
			idle = time.After(quiet)
		}
		select {
		case job, ok := <-j.jobs:
			if ok {
				j.rest()
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
			for range len(j.jobs) { // may be the chat's
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

// end does what is left when the queue is empty and no more comes.
func (j *Journal) end(c *Chain) {
	if j.pending != nil {
		if err := j.pending.finish(); err != nil {
			j.o.Log.Warn("the rest of the journal can not be kept for the next start", "err", err)
		}
	}
	j.eraseNoted(c)
	j.sync(c)
}

// eraseNoted erases the chats that Erase noted, whose records are written by now. A note that is
// gone is made again: another process that erased the chat did not have these records.
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
			j.o.Log.Warn("a chat can not be erased from the journal", "chat", id, "err", err)
		}
	}
	if len(ids) > 0 && !c.isLate() {
		j.finishPending(c)
	}
}

// finishPending does what others or this process left to do.
func (j *Journal) finishPending(c *Chain) {
	if err := c.finishPending(j.o.Now()); err != nil && !errors.Is(err, errLate) {
		j.o.Log.Warn("what is pending in the journal can not be done", "err", err)
	}
}

// rest leaves the processors to the call that is recorded, unless somebody waits.
func (j *Journal) rest() {
	timer := time.NewTimer(behind)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-j.hurry:
	}
}

// hasten ends a rest: the next one if there is none now.
func (j *Journal) hasten() {
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

// do runs one job; what panics must not take the daemon down.
func (j *Journal) do(c *Chain, job func(*Chain)) {
	defer func() {
		if p := recover(); p != nil {
			j.o.Log.Error("the journal panicked", "panic", p)
		}
	}()
	job(c)
}

// wait runs a job in its turn and returns its error, or what ended ctx before.
func (j *Journal) wait(ctx context.Context, job func(*Chain) error) error {
	result := make(chan error, 1)
	if !j.submit(func(c *Chain) {
		var err error
		defer func() { result <- err }()
		err = job(c)
	}) {
		return nil
	}
	j.hasten()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Sync has what was recorded before survive a crash of the machine, soon: the disk is asked
// when nothing was recorded for a moment, once for all who want it. A journal that has
// recorded nothing is left alone.
func (j *Journal) Sync() {
	j.mu.RLock()
	idle := j.jobs == nil
	j.mu.RUnlock()
	if !idle {
		j.submit(func(*Chain) { j.dirty = true })
	}
}

// Erase has the bodies of a chat and of its subagents removed, but for those that others have
// too, and that recorded. It does not wait for the queue: it notes the chat on the disk, so that
// the next process erases it if this one ends first. Without any records nothing happens.
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
		return fmt.Errorf("what was said in the chat can not be removed from the journal: %w", err)
	}
	if idle {
		j.start()
	}
	j.erasing.mu.Lock()
	j.erasing.ids = append(j.erasing.ids, chatID)
	j.erasing.mu.Unlock()
	select {
	case j.erase <- struct{}{}:
	default: // it will see this one too
	}
	j.hasten()
	return nil
}

// Trim removes the oldest sealed segments, and the bodies that only they named, as far as the
// limits want it. It waits for its turn, which another process can delay, until ctx ends.
func (j *Journal) Trim(ctx context.Context) error {
	err := j.wait(ctx, func(c *Chain) error { return c.Trim(j.o.Limits(), j.o.Now()) })
	if errors.Is(err, errLate) {
		return nil
	}
	return err
}

// Close writes what is queued and ends the goroutine. What cannot be appended within some seconds,
// as when another process has the lock, is noted for the next process.
func (j *Journal) Close() {
	j.mu.Lock()
	was := j.closed
	j.closed = true
	j.mu.Unlock()
	if was || j.done == nil {
		return
	}
	close(j.jobs)
	j.hasten()
	if j.isDone(j.patience) {
		return
	}
	close(j.late)
	if !j.isDone(lastPatience) {
		j.o.Log.Warn("the journal could not be written before the end", "records", len(j.jobs))
	}
}

// isDone waits for the goroutine.
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

// record queues a record of an event that is known. See recordAs.
func (j *Journal) record(event string, build func(*bodies) esrp.Value) {
	j.recordAs(func(b *bodies) (string, esrp.Value) { return event, build(b) })
}

// recordAs queues a record. build runs in the goroutine that writes: it hands bodies over and
// returns the record.
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
		case !j.failed.Swap(true): // once: a full disk fails each time
			j.o.Log.Warn("the journal can not be written", "err", err)
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

// id makes a request id.
func (j *Journal) id() esrp.UUID {
	text := j.o.NewID()
	if id, err := esrp.ParseUUID(text); err == nil {
		return id
	}
	return esrp.DerivedUUID(text)
}
