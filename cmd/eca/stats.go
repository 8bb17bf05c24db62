package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/daemon/settings"
)

const statsHelp = `Counts the tool calls of stored chats. Nothing leaves this machine.

  ran without a question  allowed by a rule, or by auto-approve
  asked                   waited for an approval: approved, rejected, or unanswered because the
                          turn was stopped first. A client that answers for you, such as
                          eca exec --approve, counts like you.
  no user to ask          needed an approval where no user could be asked, and did not run
  denied                  by the configuration or a hook
  invalid                 of a tool that does not exist, or with arguments that do not fit

A call whose turn was stopped before it ran, and before you were asked about it, counts only in the
total. A call that was stopped while it ran counts as one that ran.

With --json, one document: {total, chats}. The total, and each chat with its id and title, has
{calls, unasked, rules, asked, approved, rejected, unanswered, noUserToAsk, denied, invalid,
stopped, allowedAfterStop}. rules counts the calls that ran without a question, by rule. stopped
counts the commands to which the sandbox refused an access. allowedAfterStop counts those of them
that ran again because you allowed it.`

// callStats counts tool calls.
type callStats struct {
	Calls    int            `json:"calls"`
	Unasked  int            `json:"unasked"` // ran without a question
	Rules    map[string]int `json:"rules"`   // calls that ran without a question, by rule
	Asked    int            `json:"asked"`
	Approved int            `json:"approved"`
	Rejected int            `json:"rejected"`
	Denied   int            `json:"denied"`
	Invalid  int            `json:"invalid"`
	Stopped  int            `json:"stopped"` // by the sandbox

	Unanswered  int `json:"unanswered"`  // asked, and stopped before an answer
	NoUserToAsk int `json:"noUserToAsk"` // needed an approval where no user could be asked

	AllowedAfterStop int `json:"allowedAfterStop"`
}

// chatStats counts the tool calls of one chat.
type chatStats struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	callStats
}

func statsCommand(stdout io.Writer) *cobra.Command {
	var workspaces []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats [--workspace DIR]... [--json]",
		Short: "Count which tool calls asked, ran, were denied or stopped",
		Long:  statsHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chats, err := readStats(cmd.Context(), workspaces)
			if err != nil {
				return err
			}
			total := callStats{Rules: map[string]int{}}
			for _, c := range chats {
				total.add(c.callStats)
			}
			if !asJSON {
				return total.print(stdout, len(chats))
			}
			enc := json.NewEncoder(stdout)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			return enc.Encode(map[string]any{"total": total, "chats": chats})
		},
	}
	cmd.Flags().StringArrayVar(&workspaces, "workspace", nil, "only chats of the workspace that consists of exactly this folder; repeat the flag for a workspace of several folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// readStats counts the calls of a workspace's chats, or of all chats if there is no workspace.
func readStats(ctx context.Context, workspaces []string) ([]chatStats, error) {
	roots := make([]string, len(workspaces))
	for i, w := range workspaces {
		var err error
		if roots[i], err = filepath.Abs(w); err != nil {
			return nil, err
		}
		if info, err := os.Stat(roots[i]); err == nil && !info.IsDir() {
			return nil, fmt.Errorf("--workspace: %s is not a directory", w)
		}
	}
	dir := settings.StateDir(os.Getenv)
	var list []store.Chat
	s := store.NewReader(dir)
	defer s.Close()
	if _, err := os.Stat(filepath.Join(dir, store.File)); !errors.Is(err, os.ErrNotExist) {
		if list, err = s.Chats(ctx, roots); err != nil {
			return nil, err
		}
	}
	for i, root := range roots { // chats of a removed directory still count
		if _, err := os.Stat(root); err != nil && len(list) == 0 {
			return nil, fmt.Errorf("--workspace: there is no directory %s, and no chat of it", workspaces[i])
		}
	}
	out := []chatStats{}
	for _, c := range list {
		one := chatStats{c.ID, c.Title, callStats{Rules: map[string]int{}}}
		waiting := map[string]event.ToolJudged{}
		if err := walk(ctx, s, c.ID, func(e event.Event) bool {
			one.count(e, waiting)
			return true
		}); err != nil {
			return nil, fmt.Errorf("chat %s: %w", c.ID, err)
		}
		for _, call := range waiting { // the process was killed, or the call still waits
			one.countUnanswered(call)
		}
		out = append(out, one)
	}
	return out, nil
}

// count adds an event. waiting has the announced calls that have neither started nor been rejected,
// by id.
func (s *callStats) count(e event.Event, waiting map[string]event.ToolJudged) {
	switch b := e.Body.(type) {
	case event.ToolJudged:
		s.Calls++
		waiting[b.CallID] = b
	case event.ToolStarted:
		if call, ok := waiting[b.CallID]; ok {
			s.countRun(call)
			delete(waiting, b.CallID)
		}
	case event.ToolRejected:
		if call, ok := waiting[b.CallID]; ok { // if not, the call was stopped while it ran
			s.countRejected(call, b)
			delete(waiting, b.CallID)
		}
	case event.ToolFinished:
		if _, ok := waiting[b.CallID]; ok {
			s.Invalid++
			delete(waiting, b.CallID)
		}
		if len(b.Stops) > 0 {
			s.Stopped++
			if b.Stops[0].Rerun {
				s.AllowedAfterStop++
			}
		}
	default:
	}
}

func (s *callStats) countRun(call event.ToolJudged) {
	switch {
	case call.Manual:
		s.Asked++
		s.Approved++
	case call.Decision == "allow":
		s.Unasked++
		s.Rules[call.Rule]++
	default:
		s.Unasked++
		s.Rules["auto-approve"]++
	}
}

func (s *callStats) countRejected(call event.ToolJudged, r event.ToolRejected) {
	switch {
	case r.Unasked:
		s.NoUserToAsk++
	case r.Reason == event.RejectedByConfig, r.Reason == event.RejectedByHook:
		s.Denied++
	case r.Reason == event.RejectedByUser:
		s.Asked++
		s.Rejected++
	default:
		s.countUnanswered(call)
	}
}

// countUnanswered counts a call that ended before it ran and before its question, if any, was answered.
func (s *callStats) countUnanswered(call event.ToolJudged) {
	if call.Manual {
		s.Asked++
		s.Unanswered++
	}
}

func (s *callStats) add(other callStats) {
	s.Calls += other.Calls
	s.Unasked += other.Unasked
	s.Asked += other.Asked
	s.Approved += other.Approved
	s.Rejected += other.Rejected
	s.Denied += other.Denied
	s.Invalid += other.Invalid
	s.Unanswered += other.Unanswered
	s.NoUserToAsk += other.NoUserToAsk
	s.Stopped += other.Stopped
	s.AllowedAfterStop += other.AllowedAfterStop
	for rule, n := range other.Rules {
		s.Rules[rule] += n
	}
}

func (s *callStats) print(w io.Writer, chats int) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name string, n int) { _, _ = fmt.Fprintf(t, "%s\t%d\n", name, n) }
	row("chats", chats)
	row("tool calls", s.Calls)
	row("  ran without a question", s.Unasked)
	for _, rule := range slices.Sorted(maps.Keys(s.Rules)) {
		row("    "+rule, s.Rules[rule])
	}
	row("  asked", s.Asked)
	row("    approved", s.Approved)
	row("    rejected", s.Rejected)
	row("    unanswered", s.Unanswered)
	row("  no user to ask", s.NoUserToAsk)
	row("  denied", s.Denied)
	row("  invalid", s.Invalid)
	row("stopped by the sandbox", s.Stopped)
	row("  allowed after that", s.AllowedAfterStop)
	return t.Flush()
}
