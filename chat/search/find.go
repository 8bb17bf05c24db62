package search

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Limits of the number of results.
const (
	DefaultLimit = 20
	MaxLimit     = 200
)

// Hit is a message that was found.
type Hit struct {
	Chat      string
	Title     string
	Workspace []string // its folders
	Role      Role
	At        time.Time
	Snippet   []Part
	// Before is the cursor of the first message after the hit; empty if the hit is the last message.
	// It is the parameter `before` for a window that ends with the hit.
	Before string
	// Subagent is set if the message is in the chat of a subagent: the id of that chat. Chat is then
	// the parent chat, and the hit is its call.
	Subagent string
}

// Part is a piece of a snippet.
type Part struct {
	Text  string
	Match bool // it matches the query
}

// Result of a search.
type Result struct {
	Hits       []Hit
	More       bool // there are more matches than the limit
	Incomplete bool // some chats are not in the index yet
	Problems   []string
}

// Marks around the matches in a snippet. Indexed texts do not contain them, because plain removes
// control characters.
const (
	markOn  = "\x02"
	markOff = "\x03"
)

// Search updates the index and returns the newest messages that match a query. It waits for the
// update for at most maxWait; 0 means no limit. here lists the caller's folders.
func (x *Index) Search(ctx context.Context, q Query, here []string, limit int, maxWait time.Duration) (Result, error) {
	out := Result{Problems: q.Problems}
	if q.Empty() {
		return out, nil
	}
	incomplete, err := x.updateWithin(ctx, maxWait)
	if err != nil {
		return out, err
	}
	out.Incomplete = incomplete
	db, source, err := x.open(ctx)
	if err != nil {
		return out, err
	}
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	found, err := x.find(ctx, db, q, here, limit+1)
	if err != nil {
		return out, err
	}
	if len(found) > limit {
		out.More, found = true, found[:limit]
	}
	for _, f := range found {
		h, ok, err := f.locate(ctx, db, source)
		if err != nil {
			return out, err
		}
		if ok {
			out.Hits = append(out.Hits, h)
		}
	}
	return out, nil
}

// updateWithin is Update with a time limit.
func (x *Index) updateWithin(ctx context.Context, maxWait time.Duration) (incomplete bool, err error) {
	limited := ctx
	if maxWait > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, maxWait)
		defer cancel()
	}
	err = x.Update(limited)
	if limited.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

// foundMessage is a message in the index.
type foundMessage struct {
	chat    string
	seq     event.Seq
	role    Role
	at      time.Time
	snippet string
}

// find returns the matching messages, the newest first.
func (x *Index) find(ctx context.Context, db *sql.DB, q Query, here []string, limit int) ([]foundMessage, error) {
	where, args := []string{"words MATCH ?"}, []any{q.match()}
	if len(q.Roles) > 0 {
		for _, r := range q.Roles {
			args = append(args, slices.Index(roles(), r))
		}
		where = append(where, "m.role IN (?"+strings.Repeat(", ?", len(q.Roles)-1)+")")
	}
	var folders []string
	for _, w := range q.Workspaces {
		wanted := []string{w}
		if w == Here {
			wanted = here
		}
		for _, f := range wanted {
			folders, args = append(folders, "instr(c.workspace, ?)"), append(args, "\n"+x.opts.Workspace([]string{f})+"\n")
		}
	}
	if folders != nil {
		where = append(where, "("+strings.Join(folders, " OR ")+")")
	}
	if !q.Since.IsZero() {
		where, args = append(where, "words.rowid >= ? AND m.at >= ?"), append(args, idAt(q.Since), q.Since.UnixMilli())
	}
	if !q.Until.IsZero() {
		where, args = append(where, "m.at < ?"), append(args, q.Until.UnixMilli())
	}
	rows, err := db.QueryContext(ctx, `SELECT m.chat, m.seq, m.role, m.at, snippet(words, 0, '`+markOn+`', '`+markOff+`', '…', 24)
		FROM words CROSS JOIN messages m ON m.id = words.rowid CROSS JOIN chats c ON c.id = m.chat
		WHERE `+strings.Join(where, " AND ")+" ORDER BY words.rowid DESC LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []foundMessage
	for rows.Next() {
		var f foundMessage
		var role int
		var at int64
		if err := rows.Scan(&f.chat, &f.seq, &role, &at, &f.snippet); err != nil {
			return nil, err
		}
		f.role, f.at = roles()[role], time.UnixMilli(at).UTC()
		out = append(out, f)
	}
	return out, rows.Err()
}

// locate returns the hit for a message. A message of a subagent is located at the call in its parent's
// chat. ok is false if the message no longer exists.
func (f foundMessage) locate(ctx context.Context, db *sql.DB, source Source) (h Hit, ok bool, err error) {
	h = Hit{Chat: f.chat, Role: f.role, At: f.at, Snippet: splitSnippet(f.snippet)}
	seq := f.seq
	for chat.IsSubagent(h.Chat) {
		if h.Subagent == "" {
			h.Subagent = h.Chat
		}
		err := db.QueryRowContext(ctx, "SELECT chat, seq FROM children WHERE id = ?", h.Chat).Scan(&h.Chat, &seq)
		if errors.Is(err, sql.ErrNoRows) {
			return h, false, nil
		}
		if err != nil {
			return h, false, err
		}
	}
	meta, _, found, err := source.Meta(ctx, h.Chat)
	if err != nil || !found {
		return h, false, err
	}
	h.Title, h.Workspace = meta.Title, meta.Roots
	next, more, err := source.MessageAfter(ctx, h.Chat, seq)
	if more {
		h.Before = next.String()
	}
	return h, true, err
}

// maxPiece is the maximum size of a part of a snippet, in bytes. It is needed because a long text
// without white space is a single word.
const maxPiece = 400

// splitSnippet splits a snippet into its parts.
func splitSnippet(snippet string) []Part {
	var out []Part
	add := func(text string, match bool) {
		if text != "" {
			out = append(out, Part{shorten.Bytes(text, maxPiece), match})
		}
	}
	for rest := snippet; rest != ""; {
		before, after, marked := strings.Cut(rest, markOn)
		add(before, false)
		if !marked {
			break
		}
		var match string
		match, rest, _ = strings.Cut(after, markOff)
		add(match, true)
	}
	return out
}

// Text returns the snippet as one text.
func (h Hit) Text() string {
	var b strings.Builder
	for _, p := range h.Snippet {
		b.WriteString(p.Text)
	}
	return b.String()
}
