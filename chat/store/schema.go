package store

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/worktree"
)

// schemaVersion is stored in PRAGMA user_version.
const schemaVersion = 3

// schema1 is the first schema.
const schema1 = `
CREATE TABLE chats (
  id         TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL,          -- milliseconds since 1970, like all times here
  updated_at INTEGER NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  agent      TEXT NOT NULL DEFAULT '',
  variant    TEXT NOT NULL DEFAULT '',
  trust      INTEGER NOT NULL DEFAULT 0,
  roots      TEXT NOT NULL DEFAULT '[]' -- workspace folders, JSON
) WITHOUT ROWID;
CREATE INDEX chats_updated ON chats(updated_at);
CREATE TABLE events (
  chat    TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  turn    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  version INTEGER NOT NULL,
  body    BLOB NOT NULL,                -- JSON
  PRIMARY KEY (chat, seq)
) WITHOUT ROWID;
`

// schema2 adds columns and tables so that chat lists and message windows can be built without reading events.
const schema2 = `
ALTER TABLE chats ADD COLUMN named INTEGER NOT NULL DEFAULT 0;    -- the user chose the title
ALTER TABLE chats ADD COLUMN workspace TEXT NOT NULL DEFAULT '';  -- key of roots
ALTER TABLE chats ADD COLUMN messages INTEGER NOT NULL DEFAULT 0; -- rows in messages
DROP INDEX chats_updated;
CREATE INDEX chats_listed ON chats(workspace, updated_at, id, created_at, title, model, messages); -- covering index for chat lists
CREATE TABLE messages (
  chat  TEXT NOT NULL,
  place INTEGER NOT NULL, -- position: equal to seq; for a flag, the seq of the message that it follows
  seq   INTEGER NOT NULL, -- the event that begins the message
  name  TEXT NOT NULL,    -- id of the message for clients
  PRIMARY KEY (chat, place, seq)
) WITHOUT ROWID;
CREATE TABLE imports (
  source TEXT PRIMARY KEY,
  at     INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO messages (chat, place, seq, name)
  SELECT chat, seq, seq, coalesce(json_extract(body, '$.contentId'), json_extract(body, '$.callId'), json_extract(body, '$.id'), '')
  FROM (SELECT chat, seq, kind, body, lag(kind, 1, '') OVER (PARTITION BY chat ORDER BY seq) AS previous
        FROM events WHERE kind <> 'title')
  WHERE kind IN ('user_message', 'reasoning_started', 'tool_proposed', 'tool_finished', 'tool_rejected')
     OR kind = 'text' AND previous <> 'text';
UPDATE chats SET messages = (SELECT count(*) FROM messages WHERE chat = id);
`

// schema3 adds the chats of subagents, which lists omit.
const schema3 = `
ALTER TABLE chats ADD COLUMN parent TEXT NOT NULL DEFAULT ''; -- parent chat; set only for the chat of a subagent
CREATE INDEX chats_children ON chats(parent) WHERE parent <> '';
DROP INDEX chats_listed;
CREATE INDEX chats_listed ON chats(workspace, updated_at, id, created_at, title, model, messages) WHERE parent = '';
`

// pins is not part of the versioned schema, because older versions of eca can use a store with this table.
const pins = `
CREATE TABLE IF NOT EXISTS pins (
  chat TEXT PRIMARY KEY -- kept regardless of its age
) WITHOUT ROWID;
`

// ErrNewer is returned if a newer version of eca wrote the store.
var ErrNewer = errors.New("the chat store was written by a newer version of eca; quit this version and start the newer one, or set XDG_STATE_HOME to another folder")

// migrate brings the file to schemaVersion in one transaction. The caller holds the
// lock open.lock. Without convert, it returns ErrOlder for a file of an older version.
func migrate(db *sql.DB, convert bool) error {
	var v int
	if err := db.QueryRow("PRAGMA user_version").Scan(&v); err != nil {
		return err
	}
	switch {
	case v == schemaVersion:
		_, err := db.Exec(pins)
		return err
	case v > schemaVersion:
		return ErrNewer
	case v > 0 && !convert:
		return ErrOlder
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if v < 1 {
		if _, err := tx.Exec(schema1); err != nil {
			return err
		}
	}
	if v < 2 {
		if _, err := tx.Exec(schema2); err != nil {
			return err
		}
		if err := fillWorkspaces(tx); err != nil {
			return err
		}
	}
	if _, err := tx.Exec(schema3 + pins); err != nil {
		return err
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// fillWorkspaces computes chats.workspace from the roots.
func fillWorkspaces(tx *sql.Tx) error {
	rows, err := tx.Query("SELECT DISTINCT roots FROM chats")
	if err != nil {
		return err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var roots string
		if err := rows.Scan(&roots); err != nil {
			return err
		}
		all = append(all, roots)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, raw := range all {
		var roots []string
		if json.Unmarshal([]byte(raw), &roots) != nil {
			continue
		}
		if _, err := tx.Exec("UPDATE chats SET workspace = ? WHERE roots = ?", workspaceKey(roots), raw); err != nil {
			return err
		}
	}
	return nil
}

// workspaceKey implements WorkspaceKey.
func workspaceKey(roots []string) string {
	main := make([]string, 0, len(roots))
	for _, r := range roots {
		main = append(main, worktree.Main(r))
	}
	return folderKey(main)
}

// folderKey returns a key for folders that does not depend on their order or on symlinks. Worktrees of
// a repository have different keys; older versions of eca used this key for the workspace.
func folderKey(roots []string) string {
	keys := make([]string, 0, len(roots))
	for _, r := range roots {
		if real, err := filepath.EvalSymlinks(r); err == nil {
			r = real
		}
		keys = append(keys, filepath.Clean(r))
	}
	slices.Sort(keys)
	return strings.Join(slices.Compact(keys), "\n")
}
