package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const readChatHelp = `Prints stored chats as lines of JSON; no server has to run.

Without --chat-id: one line for each chat, the last updated first, with id, title,
status, model, created-at, updated-at and user-prompt-count. With --chat-id: one line
for each message of that chat, with role, content, created-at and, for the user's,
content-id.

One of two flags is required. --workspace reads the chats in eca's own store whose workspace
consists of exactly these folders. --db-cache-path reads a chats.db, or a cache file of the
original ECA server; its value is the path of the file or of its folder.

A DATE is a time ago (30m, 2h, 1d), a day (2025-01-01, from midnight UTC), or an
instant (2025-01-01T14:30:00Z). It is compared with updated-at of chats and created-at
of messages.`

// readChatFlags are the flags of `eca read-chat` (eca-features.md 1).
type readChatFlags struct {
	path       string
	workspaces []string
	chat       string
	role       string
	since      string
	until      string
}

func readChatCommand(stdout, stderr io.Writer) *cobra.Command {
	var f readChatFlags
	cmd := &cobra.Command{
		Use:   "read-chat",
		Short: "Print stored chats as JSON lines",
		Long:  readChatHelp,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("read-chat takes options only, not %q", strings.Join(args, " "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return readChat(cmd.Context(), f, time.Now(), stdout, stderr)
		},
	}
	cmd.Flags().StringVar(&f.path, "db-cache-path", "", "path of a chats.db, of a cache file of the original ECA server, or of its folder")
	cmd.Flags().StringArrayVar(&f.workspaces, "workspace", nil, "folder of the workspace; repeat the flag for a workspace of several folders")
	cmd.Flags().StringVar(&f.chat, "chat-id", "", "print the messages of this chat")
	cmd.Flags().StringVar(&f.role, "role", "", "only messages with this role; needs --chat-id")
	cmd.Flags().StringVar(&f.since, "since", "", "from this DATE on")
	cmd.Flags().StringVar(&f.until, "until", "", "before this DATE")
	return cmd
}

// records are the lines of the output, before they are filtered.
type records = iter.Seq2[importer.Record, error]

func readChat(ctx context.Context, f readChatFlags, now time.Time, stdout, stderr io.Writer) error {
	switch {
	case f.path == "" && len(f.workspaces) == 0:
		return usage.Errorf("missing required input source: --db-cache-path or --workspace")
	case f.path != "" && len(f.workspaces) > 0:
		return usage.Errorf("conflicting input sources: use --db-cache-path or --workspace, not both")
	case f.role != "" && f.chat == "":
		return usage.Errorf("--role needs --chat-id")
	}
	if f.role != "" {
		if err := usage.Choice("role", f.role, messageRoles()...); err != nil {
			return err
		}
	}
	keep, err := newFilter(f, now)
	if err != nil {
		return err
	}
	list, warning, done, err := f.records(ctx)
	if err != nil {
		return err
	}
	defer done()
	if warning != "" {
		fmt.Fprintln(stderr, "Warning:", warning)
	}
	out := bufio.NewWriter(stdout)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for r, err := range list {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if !keep.record(r) {
			continue
		}
		if err := enc.Encode(r); err != nil {
			return err
		}
	}
	if keep.undated > 0 {
		fmt.Fprintf(stderr, "Warning: %d message(s) without created-at were left out by --since or --until\n", keep.undated)
	}
	return out.Flush()
}

// records opens the source that the flags name. done must be called after the last record.
func (f readChatFlags) records(ctx context.Context) (list records, warning string, done func(), err error) {
	dir := f.path
	if len(f.workspaces) > 0 {
		if err := checkState(os.Getenv); err != nil {
			return nil, "", nil, err
		}
		dir = settings.StateDir(os.Getenv)
	} else if filepath.Base(dir) == store.File {
		dir = filepath.Dir(dir)
	}
	_, err = os.Stat(filepath.Join(dir, store.File))
	switch {
	case err == nil:
		s := store.NewReader(dir)
		list, err := f.storeRecords(ctx, s)
		return list, "", func() { _ = s.Close() }, err
	case len(f.workspaces) > 0:
		return nil, "", nil, fmt.Errorf("there are no chats yet: %w", err)
	}
	cache, err := importer.OpenCache(f.path)
	if err != nil {
		return nil, "", nil, err
	}
	var rs []importer.Record
	if f.chat == "" {
		rs, warning, err = cache.Summaries()
	} else {
		rs, warning, err = cache.Messages(f.chat)
	}
	if errors.Is(err, importer.ErrNotFound) && f.chat != "" {
		err = fmt.Errorf("chat not found: %s (%w)", f.chat, err)
	}
	return recordSeq(rs), warning, func() {}, err
}

func recordSeq(rs []importer.Record) records {
	return func(yield func(importer.Record, error) bool) {
		for _, r := range rs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// storeRecords reads eca's own store.
func (f readChatFlags) storeRecords(ctx context.Context, s *store.Store) (records, error) {
	roots := make([]string, len(f.workspaces))
	for i, w := range f.workspaces {
		var err error
		if roots[i], err = filepath.Abs(w); err != nil {
			return nil, err
		}
	}
	if f.chat != "" {
		meta, _, found, err := s.Meta(ctx, f.chat)
		if err != nil {
			return nil, err
		}
		if !found || len(roots) > 0 && !store.SameWorkspace(meta.Roots, roots) {
			return nil, fmt.Errorf("chat not found: %s", f.chat)
		}
		return importer.Messages(eventsOf(ctx, s, f.chat)), nil
	}
	all, err := s.Chats(ctx, roots)
	if err != nil {
		return nil, err
	}
	if all == nil && len(roots) > 0 {
		return nil, fmt.Errorf("there are no chats of the workspace %s", strings.Join(f.workspaces, ", "))
	}
	var list []importer.Record
	for _, c := range all {
		list = append(list, importer.Summary(c.Meta, c.Prompts))
	}
	return recordSeq(list), nil
}

// eventsOf yields the events of a chat in the order of walk.
func eventsOf(ctx context.Context, s *store.Store, id string) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := walk(ctx, s, id, func(e event.Event) bool { return yield(e, nil) }); err != nil {
			yield(event.Event{}, err)
		}
	}
}

// walk calls yield for each event of a chat until yield returns false. It yields a flag right before
// the message that follows the flag, not at its own sequence number.
func walk(ctx context.Context, s *store.Store, id string, yield func(event.Event) bool) error {
	span, err := s.Window(ctx, id, chat.Window{})
	if err != nil {
		return err
	}
	flags := span.Flags
	yieldFlags := func(before event.Seq) (goOn bool, err error) {
		for ; len(flags) > 0 && flags[0].NextMessage <= before; flags = flags[1:] {
			e, err := s.Events(ctx, id, flags[0].Seq, 1)
			if err != nil {
				return false, err
			}
			if len(e) > 0 && e[0].Seq == flags[0].Seq && !yield(e[0]) {
				return false, nil
			}
		}
		return true, nil
	}
	const page = 512
	for from := event.Seq(1); ; {
		events, err := s.Events(ctx, id, from, page)
		if err != nil {
			return err
		}
		for _, e := range events {
			from = e.Seq + 1
			if goOn, err := yieldFlags(e.Seq); !goOn || err != nil {
				return err
			}
			if _, flag := e.Body.(event.Flag); !flag && !yield(e) {
				return nil
			}
		}
		if len(events) < page {
			_, err := yieldFlags(span.To)
			return err
		}
	}
}

// filter decides which records are printed.
type filter struct {
	messages     bool
	role         string
	since, until time.Time // zero: no limit
	undated      int       // messages left out because they have no time
}

func newFilter(f readChatFlags, now time.Time) (*filter, error) {
	out := &filter{messages: f.chat != "", role: f.role}
	for _, d := range []struct {
		flag, value string
		at          *time.Time
	}{{"--since", f.since, &out.since}, {"--until", f.until, &out.until}} {
		if d.value == "" {
			continue
		}
		t, err := search.ParseDate(d.value, now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.flag, err)
		}
		*d.at = t
	}
	return out, nil
}

func (f *filter) record(r importer.Record) bool {
	if !f.since.IsZero() || !f.until.IsZero() {
		at, ok := r.Updated() // a chat without a time counts as older than all others
		if f.messages {
			if at, ok = r.Created(); !ok {
				f.undated++
				return false
			}
		} else if !ok {
			at = time.UnixMilli(0)
		}
		if at.Before(f.since) || !f.until.IsZero() && !at.Before(f.until) {
			return false
		}
	}
	return f.role == "" || r.Role() == f.role
}

// messageRoles lists the roles of stored messages.
func messageRoles() []string {
	return []string{
		"user", "assistant", "system", "reason", "tool_call", "tool_call_output", "server_tool_use", "server_tool_result",
		"image_generation_call", "compact_marker", "flag",
	}
}
