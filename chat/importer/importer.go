// Package importer knows chats as the reference server keeps them: it reads them from
// the reference's cache, turns them into our events (convert.go, calls.go), and turns
// our events into the reference's records, which `eca read-chat` prints
// (persisted.go).
//
// Guarantees: the cache is only read; a chat is imported at most once, also when the
// process dies in between or several daemons start together, and comes back neither
// when the user deleted it nor over one that is there; a file that cannot be read
// stops no other; what is not taken over is counted in the Report. An imported chat is
// complete: each turn is ended and each call has one result.
//
// It does not decide when to import, and does not follow a chat that the reference
// goes on with after the import.
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
	// Imported says whether a source was marked.
	Imported(ctx context.Context, source string) (bool, error)
	// MarkImported marks a source; a marked one stays as it is.
	MarkImported(ctx context.Context, source string) error
	// Import adds a chat and marks its source, in one transaction. If the source is
	// marked already, or there is a chat with that id, no chat is added.
	Import(ctx context.Context, source string, meta chat.Meta, events []event.Event) (added bool, err error)
	// Lock is that of chat.Store.
	Lock(id string) (release func(), ok bool, err error)
}

// Report has the outcome for each file that was not read before.
type Report struct {
	Imported  []string       // ids of new chats
	Known     int            // chats that are there, or were imported before
	Empty     int            // chats with neither a title nor a message that could be taken over
	Subagents int            // chats of subagents
	Busy      int            // chats in use at the moment; tried again at the next start
	LeftOut   map[string]int // parts of chats that events have no place for, by kind
	Problems  []error        // folders, files and chats that could not be read or stored; tried again at the next start
}

// Import imports the chats of a workspace from below cache, the reference's cache
// directory. It ends early with ctx.
func Import(ctx context.Context, store Store, cache string, roots []string) Report {
	r := Report{LeftOut: map[string]int{}}
	folders, err := Folders(cache, roots)
	r.problem(err)
	for _, folder := range folders {
		list, err := sources(folder)
		r.problem(err)
		for _, s := range list {
			if ctx.Err() != nil {
				return r
			}
			r.problem(r.file(ctx, store, s, roots))
		}
	}
	return r
}

func (r *Report) problem(err error) {
	if err != nil {
		r.Problems = append(r.Problems, err)
	}
}

// file imports what is in one file, unless the file was seen in this state before.
func (r *Report) file(ctx context.Context, store Store, s source, roots []string) error {
	seen, err := store.Imported(ctx, s.state())
	if err != nil || seen {
		return err
	}
	doc, err := read(s.path)
	if err != nil {
		return err
	}
	if doc.version != fmt.Sprint(Version) && doc.version != fmt.Sprint(legacyVersion) {
		return fmt.Errorf("%s: version %q is not known", s.path, doc.version)
	}
	var failed []error
	done := true
	for _, p := range doc.chats {
		// A chat has a mark of its own, without the state of the file: it does not come
		// back when the reference touches the file.
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

// chat imports one chat. It fails with errBusy while a process appends to it.
func (r *Report) chat(ctx context.Context, store Store, mark string, p persisted, s source, roots []string) error {
	if strings.HasPrefix(p.id, "subagent-") || p.fields.Get("subagent") == true {
		r.Subagents++
		return nil
	}
	if !chat.ValidID(p.id) {
		return errors.New("the id cannot be used")
	}
	c, err := convert(p, roots, s.modified)
	if err != nil {
		return err
	}
	if len(c.events) == 0 {
		r.Empty++
		r.leave(c.leftOut)
		return nil
	}
	release, ok, err := store.Lock(p.id)
	switch {
	case err == nil && !ok:
		return errBusy
	case err == nil: // where there are no lock files, chats work without
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
	r.leave(c.leftOut)
	return nil
}

func (r *Report) leave(leftOut map[string]int) {
	for kind, n := range leftOut {
		r.LeftOut[kind] += n
	}
}
