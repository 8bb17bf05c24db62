// Package importer converts chats from and to the format of the reference server. It
// imports them from the reference's cache as events (convert.go, calls.go), and converts
// events to the reference's records, which `eca read-chat` prints (persisted.go).
//
// Guarantees: the cache is only read; a chat is imported at most once, even if the process
// dies during the import or several daemons start at the same time; a chat that the user
// deleted is not imported again, and an existing chat is not overwritten; a file that
// cannot be read does not stop the import of others; the Report counts what was omitted.
// An imported chat is complete: each turn has ended and each call has one result.
//
// The caller decides when to import. Later changes of a chat in the reference's cache are
// not imported.
package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Store is where chats are imported to; chat/store implements it.
type Store interface {
	// Imported reports whether a source is marked as imported.
	Imported(ctx context.Context, source string) (bool, error)
	// MarkImported marks a source as imported.
	MarkImported(ctx context.Context, source string) error
	// Import adds a chat and marks its source, in one transaction. It adds no chat if the source is
	// marked already, or if a chat with that id exists.
	Import(ctx context.Context, source string, meta chat.Meta, events []event.Event) (added bool, err error)
	// Lock is the same as in chat.Store.
	Lock(id string) (release func(), ok bool, err error)
}

// Report is the result of an import. It covers the files that are new or have changed.
type Report struct {
	Imported  []string       // ids of imported chats
	Known     int            // number of chats that already exist, or were imported before
	Empty     int            // number of chats with neither a title nor a message that can be imported
	Subagents int            // number of chats of subagents, which are not imported
	Busy      int            // number of chats that are in use; the next import tries them again
	LeftOut   map[string]int // parts of chats that events cannot represent, by kind
	Problems  []error        // errors of folders, files and chats; the next import tries them again
}

// Import imports the chats of a workspace from the reference's cache directory. It stops
// early if ctx is done.
func Import(ctx context.Context, store Store, cache string, roots []string) Report {
	r := Report{LeftOut: map[string]int{}}
	folders, err := Folders(cache, roots)
	r.addProblem(err)
	for _, folder := range folders {
		list, err := sources(folder)
		r.addProblem(err)
		for _, s := range list {
			if ctx.Err() != nil {
				return r
			}
			r.addProblem(r.file(ctx, store, s, roots))
		}
	}
	return r
}

func (r *Report) addProblem(err error) {
	if err != nil {
		r.Problems = append(r.Problems, err)
	}
}

// file imports the chats of one file, unless the file has not changed since it was imported.
func (r *Report) file(ctx context.Context, store Store, s source, roots []string) error {
	imported, err := store.Imported(ctx, s.state())
	if err != nil || imported {
		return err
	}
	doc, err := read(s.path)
	if err != nil {
		return err
	}
	if doc.version != fmt.Sprint(Version) && doc.version != fmt.Sprint(legacyVersion) {
		return fmt.Errorf("%s: unknown version %q", s.path, doc.version)
	}
	var failed []error
	done := true
	for _, p := range doc.chats {
		// The mark of a chat does not contain the state of the file, so that the chat is not
		// imported again when the reference changes the file.
		mark := s.path
		if doc.legacy {
			mark += "#" + p.id
		}
		switch err := r.chat(ctx, store, mark, p, s, roots); {
		case errors.Is(err, errBusy):
			r.Busy++
			done = false
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: chat %q: %w", s.path, p.id, err))
			done = false
		}
	}
	if !done {
		return errors.Join(failed...)
	}
	return store.MarkImported(ctx, s.state())
}

var errBusy = errors.New("the chat is in use")

// chat imports one chat. It returns errBusy while another process uses the chat.
func (r *Report) chat(ctx context.Context, store Store, mark string, p storedChat, s source, roots []string) error {
	if strings.HasPrefix(p.id, "subagent-") || p.fields.Get("subagent") == true {
		r.Subagents++
		return nil
	}
	if !chat.ValidID(p.id) {
		return errors.New("invalid id")
	}
	c, err := convert(p, roots, s.modified)
	if err != nil {
		return err
	}
	if len(c.events) == 0 {
		r.Empty++
		r.omit(c.omitted)
		return nil
	}
	release, ok, err := store.Lock(p.id)
	switch {
	case err == nil && !ok:
		return errBusy
	case err == nil: // if lock files are not possible, continue without the lock
		defer release()
	}
	added, err := store.Import(ctx, mark, c.meta, c.events)
	switch {
	case err != nil:
		return err
	case !added:
		r.Known++
		return nil
	}
	r.Imported = append(r.Imported, p.id)
	r.omit(c.omitted)
	return nil
}

func (r *Report) omit(leftOut map[string]int) {
	for kind, n := range leftOut {
		r.LeftOut[kind] += n
	}
}
