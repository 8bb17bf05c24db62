package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// List implements chat.Store.
func (s *Store) List(ctx context.Context, roots []string, by chat.Order, limit int) ([]chat.Summary, error) {
	db, err := s.openToRead()
	if err != nil {
		return nil, err
	}
	order := "updated_at"
	if by == chat.ByCreated {
		order = "created_at"
	}
	if limit <= 0 {
		limit = -1
	}
	// The query returns a single text: with thousands of chats, most of the time would go into
	// passing values from SQLite.
	var text sql.NullString
	err = db.QueryRowContext(ctx, `SELECT group_concat(chat, '') FROM (
		SELECT concat(created_at, ' ', updated_at, ' ', messages, ' ', octet_length(id), ' ', octet_length(title), ' ', octet_length(model), ' ', id, title, model) AS chat
		FROM chats WHERE workspace IN (?, ?) AND parent = '' ORDER BY `+order+` DESC, id DESC LIMIT ?)`, workspaceKey(roots), folderKey(roots), limit).Scan(&text)
	if err != nil {
		return nil, fmt.Errorf("list chats: %w", s.explain(err))
	}
	out := []chat.Summary{}
	for rest := text.String; rest != ""; {
		var c chat.Summary
		if c, rest, err = summary(rest); err != nil {
			return nil, fmt.Errorf("list chats: %w", err)
		}
		out = append(out, c)
	}
	// SQLite does not guarantee the order of an aggregate, although it keeps it here.
	slices.SortStableFunc(out, func(a, b chat.Summary) int {
		if by == chat.ByCreated {
			return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID))
		}
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	return out, nil
}

// summary parses the first chat in the result of List's query: six numbers, followed by three strings
// whose lengths are the last three numbers.
func summary(text string) (c chat.Summary, rest string, err error) {
	var n [6]int64 // created, updated, messages, length of id, of title, of model
	rest = text
	for i := range n {
		var word string
		word, rest, _ = strings.Cut(rest, " ")
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil {
			return c, "", err
		}
	}
	id := int(n[3])
	title := id + int(n[4])
	model := title + int(n[5])
	return chat.Summary{
		Created: time.UnixMilli(n[0]).UTC(), Updated: time.UnixMilli(n[1]).UTC(), Messages: int(n[2]),
		ID: rest[:id], Title: rest[id:title], Model: rest[title:model],
	}, rest[model:], nil
}

// Find implements chat.Store.
func (s *Store) Find(ctx context.Context, id, clientID string, last bool) (at chat.Cursor, found bool, err error) {
	if clientID == "" {
		return chat.Cursor{}, false, nil // many messages have no id, so an empty one identifies nothing
	}
	db, err := s.openToRead()
	if err != nil {
		return chat.Cursor{}, false, err
	}
	order := "place, seq"
	if last {
		order = "place DESC, seq DESC"
	}
	err = db.QueryRowContext(ctx, "SELECT place, seq FROM messages WHERE chat = ? AND name = ? ORDER BY "+order+" LIMIT 1", id, clientID).Scan(&at.Anchor, &at.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return chat.Cursor{}, false, nil
	}
	if err != nil {
		return chat.Cursor{}, false, fmt.Errorf("find %s in chat %s: %w", clientID, id, s.explain(err))
	}
	return at, true, nil
}

// Window implements chat.Store.
func (s *Store) Window(ctx context.Context, id string, w chat.Window) (chat.Span, error) {
	db, err := s.openToRead()
	if err != nil {
		return chat.Span{}, err
	}
	tx, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return chat.Span{}, fmt.Errorf("read chat %s: %w", id, s.explain(err))
	}
	defer tx.Rollback()
	q := &windowQuery{ctx: ctx, tx: tx, chat: id}
	span := q.span(w)
	if q.err != nil {
		return chat.Span{}, fmt.Errorf("read chat %s: %w", id, s.explain(q.err))
	}
	return span, nil
}

// windowQuery runs the queries of a window and keeps the first error.
type windowQuery struct {
	ctx  context.Context
	tx   *sql.Tx
	chat string
	err  error
}

// span computes which messages, events and flags a window contains.
func (q *windowQuery) span(w chat.Window) chat.Span {
	low, high := chat.Cursor{}, chat.Cursor{Anchor: maxPlace, Seq: maxPlace}
	if w.After != nil {
		q.exists(*w.After)
		low = *w.After
	}
	if w.Before != nil {
		q.exists(*w.Before)
		high = *w.Before
	}
	out := chat.Span{Total: q.number("SELECT count(*) FROM messages WHERE chat = ?", q.chat)}
	const between = "FROM messages WHERE chat = ? AND (place, seq) > (?, ?) AND (place, seq) < (?, ?)"
	args := []any{q.chat, low.Anchor, low.Seq, high.Anchor, high.Seq}
	n := q.number("SELECT count(*) "+between, args...)
	if w.Limit > 0 {
		n = min(n, w.Limit)
	}
	if out.Returned = n; n == 0 {
		out.From, out.To = maxPlace, maxPlace
		if out.Total == 0 {
			out.From = 1 // include eca's notices before the first message
		}
		return out
	}
	up, down := "SELECT place, seq "+between+" ORDER BY place, seq LIMIT 1 OFFSET ?", "SELECT place, seq "+between+" ORDER BY place DESC, seq DESC LIMIT 1 OFFSET ?"
	if w.Forward {
		out.First, _ = q.cursor(up, append(args, 0)...)
		out.Last, _ = q.cursor(up, append(args, n-1)...)
	} else {
		out.First, _ = q.cursor(down, append(args, n-1)...)
		out.Last, _ = q.cursor(down, append(args, 0)...)
	}
	out.Older = q.number("SELECT count(*) FROM (SELECT 1 FROM messages WHERE chat = ? AND (place, seq) < (?, ?) LIMIT 1)", q.chat, out.First.Anchor, out.First.Seq) > 0
	out.Newer = q.number("SELECT count(*) FROM (SELECT 1 FROM messages WHERE chat = ? AND (place, seq) > (?, ?) LIMIT 1)", q.chat, out.Last.Anchor, out.Last.Seq) > 0
	out.From = out.First.Anchor
	if out.First.Seq != out.First.Anchor {
		out.From = q.next(out.First.Anchor)
	}
	out.To = q.next(out.Last.Anchor)
	out.Flags = q.flags(out.First, out.Last)
	return out
}

// maxPlace is greater than the position of any event.
const maxPlace = 1<<62 - 1

// next returns the position of the first message after a position. It skips flags.
func (q *windowQuery) next(place event.Seq) event.Seq {
	c, ok := q.cursor("SELECT place, seq FROM messages WHERE chat = ? AND place > ? AND seq = place ORDER BY place LIMIT 1", q.chat, place)
	if !ok {
		return maxPlace
	}
	return c.Anchor
}

func (q *windowQuery) flags(first, last chat.Cursor) []chat.PlacedFlag {
	if q.err != nil {
		return nil
	}
	rows, err := q.tx.QueryContext(q.ctx, `SELECT place, seq FROM messages
		WHERE chat = ? AND seq <> place AND (place, seq) >= (?, ?) AND (place, seq) <= (?, ?) ORDER BY place, seq`,
		q.chat, first.Anchor, first.Seq, last.Anchor, last.Seq)
	if err != nil {
		q.err = err
		return nil
	}
	defer rows.Close()
	var out []chat.PlacedFlag
	for rows.Next() {
		var c chat.Cursor
		if q.err = rows.Scan(&c.Anchor, &c.Seq); q.err != nil {
			return nil
		}
		out = append(out, chat.PlacedFlag{Seq: c.Seq, NextMessage: c.Anchor})
	}
	if q.err = rows.Err(); q.err == nil {
		_ = rows.Close() // one connection: the next query needs it
		for i := range out {
			out[i].NextMessage = q.next(out[i].NextMessage)
		}
	}
	return out
}

func (q *windowQuery) exists(c chat.Cursor) {
	if q.number("SELECT count(*) FROM messages WHERE chat = ? AND place = ? AND seq = ?", q.chat, c.Anchor, c.Seq) == 0 && q.err == nil {
		q.err = chat.ErrCursorExpired
	}
}

func (q *windowQuery) number(query string, args ...any) int {
	var n int
	if q.err == nil {
		q.err = q.tx.QueryRowContext(q.ctx, query, args...).Scan(&n)
	}
	return n
}

func (q *windowQuery) cursor(query string, args ...any) (c chat.Cursor, ok bool) {
	if q.err != nil {
		return c, false
	}
	err := q.tx.QueryRowContext(q.ctx, query, args...).Scan(&c.Anchor, &c.Seq)
	if errors.Is(err, sql.ErrNoRows) {
		return c, false
	}
	q.err = err
	return c, err == nil
}
