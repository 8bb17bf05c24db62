package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// halfStore has one chat, but finds no calls in it and no other chats.
type halfStore struct {
	chat.Store
	events []event.Event
}

var errAway = errors.New("the disk is away")

func (s *halfStore) Meta(_ context.Context, id string) (chat.Meta, event.Seq, bool, error) {
	return chat.Meta{ID: id}, event.Seq(len(s.events)), true, nil
}

func (s *halfStore) Events(_ context.Context, id string, from event.Seq, limit int) ([]event.Event, error) {
	if id != "c" {
		return nil, errAway
	}
	rest := s.events[min(int(from)-1, len(s.events)):]
	return rest[:min(limit, len(rest))], nil
}

func (*halfStore) Find(context.Context, string, string, bool) (chat.Cursor, bool, error) {
	return chat.Cursor{}, false, errAway
}

func (*halfStore) Sync(context.Context) error { return nil }

// An unreadable part of a call is only missing from the replay, and the log names it.
func TestReplayTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	sub := &event.Details{Subagent: &event.Subagent{ChatID: "subagent-1"}}
	if !chat.IsSubagent(sub.Subagent.ChatID) {
		t.Fatal(sub.Subagent.ChatID)
	}
	s := &halfStore{}
	for _, b := range []event.Body{
		event.ToolFinished{CallID: "older"},
		event.ToolProposed{Tool: event.Tool{CallID: "spawn"}},
		event.ToolJudged{Tool: event.Tool{CallID: "spawn"}, Details: sub},
		event.ToolStarted{CallID: "spawn"},
		event.ToolFinished{CallID: "spawn"},
		event.TextDelta{Text: "Done."},
		event.TurnFinished{Reason: event.FinishedDone},
	} {
		s.events = append(s.events, event.Event{Seq: event.Seq(len(s.events) + 1), Turn: "t", Body: b})
	}
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }, ConfigHome: t.TempDir()})
	e := chat.New(chat.Deps{Store: s, Current: func() chat.Snapshot { return chat.Snapshot{Config: cfg.Config} }, Log: slog.New(slog.DiscardHandler)})
	defer e.Close()
	session, _, err := e.Open(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	text := ""
	span := chat.Span{From: 1, To: event.Seq(len(s.events) + 1)}
	_, err = replay(t.Context(), session, span, newRenderer("c", cfg), slog.New(slog.NewTextHandler(&log, nil)), func(list []notification) {
		for _, n := range list {
			if c, ok := n.Params.(protocol.ContentReceived); ok {
				if said, ok := c.Content.(protocol.TextContent); ok {
					text += said.Text
				}
			}
		}
	})
	if err != nil || text != "Done." {
		t.Errorf("%q %v", text, err)
	}
	for _, want := range []string{`msg="cannot show how a tool call began" chat=c call=older err="the disk is away"`, `msg="cannot show what a subagent did" chat=c call=spawn err="the chat cannot be read: the disk is away"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%s is not in %s", want, log.String())
		}
	}
}
