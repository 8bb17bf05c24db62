package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/chat/search"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

const searchHelp = `Finds messages in all chats of this machine, newest first.

A message matches if it contains all words of the QUERY, in any order and case. AND, OR and NOT are
words like others. Quoted words must stand together ("no such file"). An asterisk at the end matches
all words with that beginning (migrat*). Filters: role:user (assistant, reasoning, tool, summary),
workspace:DIR (workspace:here for this directory), since:DATE and until:DATE. A DATE is a time ago
(30m, 2h, 1d), a day (2025-01-01) or an instant (2025-01-01T14:30:00Z).

With --json, one document: {results, more}.`

const chatsHelp = `Lists, searches, shows, exports, pins and deletes stored chats.

A CHAT is the id of a chat, or its first characters (at least 4) if only one chat has them.`

const exportHelp = `Writes a chat as JSON, without known secrets; /import reads it. Without FILE, or with -, it is written
to stdout. A FILE that exists is not overwritten.`

func chatsCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{Use: "chats", Short: "List, search, show, export, pin and delete stored chats", Long: chatsHelp}
	cmd.AddCommand(
		listChatsCommand(stdout, stderr),
		searchChatsCommand(sf, stdout, stderr),
		showChatCommand(stdout, stderr),
		&cobra.Command{
			Use: "export CHAT [FILE]", Short: "Write a chat as JSON, without known secrets; /import reads it", Long: exportHelp, Args: cobra.RangeArgs(1, 2),
			RunE: func(cmd *cobra.Command, args []string) error {
				return readStore(stderr, func(s *store.Store) error {
					id, err := resolveChat(cmd.Context(), s, args[0])
					if err != nil {
						return err
					}
					return withConfig(*sf, stderr, func(d *daemon.Daemon) error { return exportChat(cmd.Context(), d, id, args[1:], stdout) })
				})
			},
		},
		&cobra.Command{
			Use: "pin CHAT...", Short: "Keep chats however old they are (chatRetentionDays)", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return pinChats(cmd.Context(), args, true) },
		},
		&cobra.Command{
			Use: "unpin CHAT...", Short: "Apply chatRetentionDays to chats again", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error { return pinChats(cmd.Context(), args, false) },
		},
		&cobra.Command{
			Use: "delete CHAT...", SuggestFor: []string{"rm", "remove"}, Short: "Delete chats with their subagents' chats, undo points and recordings", Args: cobra.MinimumNArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withConfig(*sf, stderr, func(d *daemon.Daemon) error { return deleteChats(cmd.Context(), d, args, stdout) })
			},
		},
	)
	return cmd
}

// errNoChats means that no chat has been stored yet.
var errNoChats = errors.New("there are no chats yet")

// readStore calls fn with the chat store, for a command that only reads. If fn succeeds although the
// store cannot be written, readStore says so on stderr.
func readStore(stderr io.Writer, fn func(*store.Store) error) error {
	return openStore(store.NewReader, func(s *store.Store) error {
		err := fn(s)
		if unwritable := s.CheckWritable(); err == nil && unwritable != nil {
			fmt.Fprintf(stderr, "eca: the chats can be read, but not changed: %s\n", strings.TrimSuffix(unwritable.Error(), store.SeeDoctor))
		}
		return err
	})
}

// withStore calls fn with the chat store. A missing store is an error.
func withStore(fn func(*store.Store) error) error { return openStore(store.New, fn) }

func openStore(open func(dir string) *store.Store, fn func(*store.Store) error) error {
	if err := checkState(os.Getenv); err != nil {
		return err
	}
	dir := settings.StateDir(os.Getenv)
	if _, err := os.Stat(filepath.Join(dir, store.File)); errors.Is(err, os.ErrNotExist) {
		return errNoChats
	}
	s := open(dir)
	defer s.Close()
	return fn(s)
}

func listChatsCommand(stdout, stderr io.Writer) *cobra.Command {
	var workspaces []string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", SuggestFor: []string{"ls"}, Short: "List chats, the last updated first", Long: `Lists chats, the last updated first. A chat without a title is listed with the beginning of its
first prompt. A chat is left out if it has no title and only slash commands were entered in it.`, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := readStore(stderr, func(s *store.Store) error {
				roots := make([]string, len(workspaces))
				for i, w := range workspaces {
					var err error
					if roots[i], err = filepath.Abs(w); err != nil {
						return err
					}
				}
				list, err := s.Chats(cmd.Context(), roots)
				if err != nil {
					return err
				}
				list = slices.DeleteFunc(list, func(c store.Chat) bool { return c.Title == "" && c.Prompts == c.Commands })
				if missing := missingFolder(roots); len(list) == 0 && missing != "" {
					return fmt.Errorf("there is no folder %s, and no chats were made there", missing)
				}
				if len(list) == 0 && len(workspaces) > 0 {
					fmt.Fprintf(stderr, "eca: there are no chats of %s\n", strings.Join(roots, ", "))
				} else if len(list) == 0 {
					fmt.Fprintln(stderr, "eca:", errNoChats)
				}
				return printChats(list, asJSON, stdout)
			})
			if errors.Is(err, errNoChats) {
				fmt.Fprintln(stderr, "eca:", err)
				return nil
			}
			return err
		},
	}
	cmd.Flags().StringArrayVar(&workspaces, "workspace", nil, "only chats of the workspace that consists of exactly this folder; repeat the flag for a workspace of several folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each chat")
	return cmd
}

// searchedFolders returns the folders that a query names.
func searchedFolders(query string) (folders []string) {
	for _, w := range search.Parse(query, time.Now()).Workspaces {
		if w != search.Here {
			folders = append(folders, w)
		}
	}
	return folders
}

// missingFolder returns the first of the folders that does not exist, or "".
func missingFolder(roots []string) string {
	for _, root := range roots {
		if _, err := os.Stat(root); errors.Is(err, os.ErrNotExist) {
			return root
		}
	}
	return ""
}

func printChats(list []store.Chat, asJSON bool, stdout io.Writer) error {
	if asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetEscapeHTML(false)
		for _, c := range list {
			if err := enc.Encode(importer.Summary(c.Meta, c.Prompts)); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	const beginning = 60
	for _, c := range list {
		if c.Title == "" { // none was generated, or it came after the end
			c.Title = shorten.Text(strings.Join(strings.Fields(c.First), " "), beginning)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", printable(c.ID), c.Updated.Local().Format("2006-01-02 15:04"), printable(strings.Join(c.Roots, ", ")), printable(c.Title))
	}
	return t.Flush()
}

func searchChatsCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var limit int
	var asJSON bool
	cmd := &cobra.Command{
		Use: "search QUERY...", Short: "Find messages in all chats", Long: searchHelp, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > search.MaxLimit {
				return usage.Errorf("--limit must be between 1 and %d, not %d", search.MaxLimit, limit)
			}
			search := func(d *daemon.Daemon) error {
				waiting := noticeIfSlow(stderr, "Indexing chats")
				query := strings.Join(args, " ")
				const waitForIndex = true
				found, err := d.Search(cmd.Context(), query, limit, waitForIndex)
				waiting.Stop()
				if err != nil {
					return err
				}
				if len(found.Problems) > 0 { // without the invalid filter, the results would mislead
					return usage.Errorf("%s", strings.Join(found.Problems, "; "))
				}
				if missing := missingFolder(searchedFolders(query)); len(found.Hits) == 0 && missing != "" {
					return fmt.Errorf("there is no folder %s, and no chats were made there", missing)
				}
				if asJSON {
					return printHitsJSON(found, stdout)
				}
				if len(found.Hits) == 0 && strings.Count(query, `"`)%2 != 0 {
					fmt.Fprintln(stderr, "eca: a quote is not closed, so all words after it must stand together")
				}
				if hint := search.MisspelledFilter(query); len(found.Hits) == 0 && hint != "" {
					fmt.Fprintln(stderr, "eca:", printable(hint))
				}
				return printHits(found, stdout, stderr)
			}
			err := readStore(stderr, func(*store.Store) error { return withConfig(*sf, stderr, search) })
			if errors.Is(err, errNoChats) {
				return withConfig(*sf, stderr, search)
			}
			return err
		},
	}
	cmd.Flags().IntVar(&limit, "limit", search.DefaultLimit, fmt.Sprintf("how many messages to show; %d at most", search.MaxLimit))
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func printHits(found search.Result, stdout, stderr io.Writer) error {
	for _, h := range found.Hits {
		text := strings.Join(strings.Fields(h.Text()), " ")
		_, err := fmt.Fprintf(stdout, "%s  %s  %s  %s  %s\n    %s\n", printable(h.Chat), h.At.Local().Format("2006-01-02 15:04"), h.Role,
			printable(strings.Join(h.Workspace, ", ")), printable(h.Title), printable(text))
		if err != nil {
			return err
		}
	}
	if found.More {
		fmt.Fprintln(stderr, "eca: there are older messages; narrow the search, or raise --limit")
	}
	if len(found.Hits) == 0 {
		fmt.Fprintln(stderr, "eca: nothing was found")
	}
	return nil
}

func printHitsJSON(found search.Result, stdout io.Writer) error {
	type hit struct {
		Chat      string   `json:"chatId"`
		Title     string   `json:"title"`
		Workspace []string `json:"workspace"`
		Role      string   `json:"role"`
		At        int64    `json:"createdAt"`
		Text      string   `json:"text"`
		Before    string   `json:"before,omitempty"`
		Subagent  string   `json:"subagent,omitempty"`
	}
	out := struct {
		Results []hit `json:"results"`
		More    bool  `json:"more"`
	}{[]hit{}, found.More}
	for _, h := range found.Hits {
		out.Results = append(out.Results, hit{h.Chat, h.Title, h.Workspace, string(h.Role), h.At.UnixMilli(), h.Text(), h.Before, h.Subagent})
	}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func showChatCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "show CHAT", SuggestFor: []string{"cat", "print", "view"}, Short: "Print what was said in a chat; `eca read-chat` prints it for scripts", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return readStore(stderr, func(s *store.Store) error { return showChat(cmd.Context(), s, args[0], stdout) })
		},
	}
}

func showChat(ctx context.Context, s *store.Store, id string, stdout io.Writer) error {
	id, err := resolveChat(ctx, s, id)
	if err != nil {
		return err
	}
	fold, merged := transcript.New(), transcript.Merger{}
	var failed error
	write := func(who, text string, at time.Time) {
		if text = strings.TrimSpace(text); text != "" && failed == nil {
			_, failed = fmt.Fprintf(stdout, "%s, %s:\n%s\n\n", who, at.Local().Format("2006-01-02 15:04"), visible.Text(text))
		}
	}
	show := func(list []transcript.Change) {
		for _, c := range list {
			who, text := speakerAndText(c.Item)
			write(who, text, c.Time)
		}
	}
	var last time.Time // of the last event
	answering := false
	err = walk(ctx, s, id, func(e event.Event) bool {
		last = e.Time
		switch e.Body.(type) {
		case event.TurnStarted:
			answering = true
		case event.TurnFinished:
			answering = false
		default:
		}
		if c, ok := fold.Add(e); ok {
			show(merged.Add(c))
		}
		return failed == nil
	})
	show(merged.Flush())
	if answering {
		for _, call := range fold.Calls() {
			write("tool "+call.Name, outcome(call), last)
		}
		write("eca", "This turn has not finished: it is still running, or eca was killed", last)
	}
	return errors.Join(err, failed)
}

// speakerAndText returns the speaker and the text of an item. Both are empty if the item is not shown.
func speakerAndText(i transcript.Item) (who, text string) {
	switch i := i.(type) {
	case transcript.Prompt:
		return "user", i.Text
	case transcript.Answer:
		return "assistant", i.Piece
	case transcript.Notice:
		return "eca", i.Text
	case transcript.Compaction:
		return "summary", i.Summary
	case transcript.Call:
		if i.Stage == transcript.Finished || i.Stage == transcript.Rejected {
			return "tool " + i.Name, outcome(i)
		}
	case transcript.Turn:
		if i.End != nil && i.End.Reason == event.FinishedInterrupted {
			return "eca", transcript.InterruptedText
		}
	case transcript.Reasoning, transcript.Report, transcript.Usage, transcript.Title, transcript.Progress, transcript.Hook, transcript.NoTasks, transcript.Flag:
	}
	return "", ""
}

// outcome returns the summary of a call with its result, or with the reason why it has none.
func outcome(c transcript.Call) string {
	summary := cmp.Or(c.Judgment.Summary, c.Summary)
	switch {
	case c.Stage == transcript.Finished:
		return summary + "\n" + strings.Join(c.Result.Outputs, "\n")
	case c.Stage == transcript.Running:
		return summary + " (still running, or eca was killed while it ran)"
	case c.Stage != transcript.Rejected:
		return summary + " (has not run yet)"
	case c.Started && c.Rejection.Reason == event.Interrupted:
		return summary + " (interrupted: eca ended while it ran)"
	case c.Started:
		return summary + " (stopped while it ran)"
	}
	why := "stopped before it ran"
	switch {
	case c.Rejection.Unasked:
		why = "no user could be asked"
	case c.Rejection.Reason == event.RejectedByUser:
		why = "rejected by the user"
	case c.Rejection.Reason == event.RejectedByConfig:
		why = "denied by " + cmp.Or(c.Judgment.Rule, "the configuration")
	case c.Rejection.Reason == event.RejectedByHook:
		why = "rejected by a hook"
	case c.Rejection.Reason == event.Interrupted:
		why = "eca ended before it ran"
	default:
	}
	return summary + " (did not run: " + why + ")"
}

// exportChat writes a chat to the file to[0], or to stdout if to is empty or to[0] is "-".
func exportChat(ctx context.Context, d *daemon.Daemon, id string, to []string, stdout io.Writer) error {
	if len(to) == 0 || to[0] == "-" {
		return d.ExportChat(ctx, id, stdout)
	}
	f, err := os.OpenFile(to[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		if info, statErr := os.Stat(to[0]); statErr == nil && info.IsDir() {
			return fmt.Errorf("%s is a folder: name a file in it", to[0])
		}
		return fmt.Errorf("%s exists already and is not overwritten; remove it, or choose another name", to[0])
	}
	if err != nil {
		return err
	}
	if err = errors.Join(d.ExportChat(ctx, id, f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(to[0]))
	}
	return nil
}

func pinChats(ctx context.Context, names []string, on bool) error {
	ids, failed := resolveChats(ctx, names)
	return errors.Join(failed, withStore(func(s *store.Store) error {
		var failed error
		for _, id := range ids {
			if err := s.Pin(ctx, id, on); err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
			}
		}
		return failed
	}))
}

func deleteChats(ctx context.Context, d *daemon.Daemon, names []string, stdout io.Writer) error {
	ids, failed := resolveChats(ctx, names)
	for _, id := range ids {
		if err := d.Engine().Delete(id)(); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", id, err))
			continue
		}
		fmt.Fprintln(stdout, "deleted", printable(id))
	}
	return failed
}
