package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// maxRecord limits the size of a stored task, in bytes.
const maxRecord = 1 << 20

// RecordsIn returns the folder, below the state folder, that stores the tasks of a workspace.
func RecordsIn(state, workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(state, "a2a", hex.EncodeToString(sum[:8]))
}

// record is the stored form of a task (docs/storage.md).
type record struct {
	Task  task         `json:"task"`
	Hooks []recordHook `json:"hooks,omitempty"`
	Chat  bool         `json:"chat,omitempty"` // the task has a chat, and is deleted together with it
}

type recordHook struct {
	Config pushConfig `json:"config"`
	Legacy bool       `json:"legacy,omitempty"`
}

// records stores each task in a file, for the next server of the same folder. A nil *records stores
// nothing.
type records struct {
	dir    string
	unlock func()
	log    *slog.Logger
}

// errFolderInUse means that another server uses the folder of records.
var errFolderInUse = errors.New("another eca serve already stores the tasks of this folder")

// openRecords creates the folder if necessary and locks it. It returns errFolderInUse if another server
// has locked it.
func openRecords(dir string, log *slog.Logger) (*records, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, ok, err := filelock.Try(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errFolderInUse
	}
	return &records{dir, unlock, log}, nil
}

func (r *records) close() {
	if r != nil {
		r.unlock()
	}
}

const recordSuffix = ".json"

func (r *records) path(id string) string { return filepath.Join(r.dir, id+recordSuffix) }

// save replaces the record of a task. A failure is only logged: the task continues, but the next
// server restores an older state of it, or nothing.
func (r *records) save(rec record) {
	if r == nil {
		return
	}
	body, err := rec.encode()
	if err == nil {
		err = safeio.Write(r.path(rec.Task.ID), body, 0o600)
	}
	if err != nil {
		r.log.Warn("cannot store a task", "task", rec.Task.ID, "err", err)
	}
}

func (r *records) remove(id string) {
	if r == nil {
		return
	}
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("cannot remove a task's record", "task", id, "err", err)
	}
}

// load reads all records, the least recently changed task first. It removes the temporary files of a
// killed server, and ignores other files.
func (r *records) load() []record {
	if r == nil {
		return nil
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.log.Warn("cannot restore tasks", "err", err)
	}
	var out []record
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), recordSuffix+"-") {
			_ = os.Remove(filepath.Join(r.dir, e.Name())) // a leftover file is harmless
			continue
		}
		id, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok || strings.HasPrefix(id, ".") || !e.Type().IsRegular() {
			continue
		}
		rec, err := readRecord(filepath.Join(r.dir, e.Name()))
		if err == nil && rec.Task.ID != id {
			err = fmt.Errorf("it belongs to task %q", rec.Task.ID)
		}
		if err != nil {
			r.log.Warn("cannot restore a task", "file", e.Name(), "err", err)
			continue
		}
		out = append(out, rec)
	}
	slices.SortStableFunc(out, func(a, b record) int { return strings.Compare(a.Task.Status.Timestamp, b.Task.Status.Timestamp) })
	return out
}

func readRecord(path string) (record, error) {
	f, err := os.Open(path)
	if err != nil {
		return record{}, err
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, 2*maxRecord))
	if err != nil {
		return record{}, err
	}
	return decodeRecord(body)
}

// decodeRecord decodes a record. A task without an id, a context or a known state is an error.
func decodeRecord(body []byte) (record, error) {
	var rec record
	if err := json.Unmarshal(body, &rec); err != nil {
		return record{}, err
	}
	t := rec.Task
	if t.ID == "" || t.ContextID == "" || !slices.Contains(states(), t.Status.State) {
		return record{}, fmt.Errorf("not a task: id %q, context %q, state %q", t.ID, t.ContextID, t.Status.State)
	}
	return rec, nil
}

// encode encodes a record. If it exceeds maxRecord, encode removes the callers' files, and, where
// that is not enough, the oldest messages, the end of the answer, and the status message.
func (rec record) encode() ([]byte, error) {
	body, err := json.Marshal(rec)
	if err != nil || len(body) <= maxRecord {
		return body, err
	}
	t := &rec.Task
	t.History = slices.Clone(t.History)
	for i := range t.History {
		t.History[i].Parts = withoutFiles(t.History[i].Parts)
	}
	for len(t.History) > 0 && jsonSize(t.History) > maxRecord/2 {
		t.History = t.History[1:]
	}
	if len(t.Artifacts) > 0 && jsonSize(t.Artifacts) > maxRecord/2 {
		a := t.Artifacts[0]
		text := textOf(a.Parts)
		a.Parts = []part{textPart(strings.ToValidUTF8(text[:min(len(text), maxRecord/8)], "") + "\n[The rest is only in the chat.]")}
		t.Artifacts = []artifact{a}
	}
	if body, err = json.Marshal(rec); err == nil && len(body) > maxRecord {
		t.Status.Message = nil // it can contain a pending call with huge arguments
		body, err = json.Marshal(rec)
	}
	return body, err
}

func withoutFiles(parts []part) []part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if p.Raw != nil {
			text := fmt.Sprintf("[A file of %d bytes, not stored.]", len(*p.Raw)*3/4)
			parts[i].Raw, parts[i].Text = nil, &text
		}
	}
	return parts
}

// textOf returns the text of the first part, or "".
func textOf(parts []part) string {
	if len(parts) == 0 || parts[0].Text == nil {
		return ""
	}
	return *parts[0].Text
}

func jsonSize(v any) int {
	body, _ := json.Marshal(v)
	return len(body)
}
