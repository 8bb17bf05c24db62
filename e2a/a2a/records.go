package a2a

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/atomicfile"
)

// maxRecord is how much of a task is kept on the disk, in bytes.
const maxRecord = 1 << 20

// RecordsIn is the folder of a workspace's tasks below that of all state.
func RecordsIn(state, workspace string) string {
	sum := sha256.Sum256([]byte(workspace))
	return filepath.Join(state, "a2a", hex.EncodeToString(sum[:8]))
}

// record is a task as it is kept (docs/storage.md).
type record struct {
	Task  task         `json:"task"`
	Hooks []recordHook `json:"hooks,omitempty"`
	Chat  bool         `json:"chat,omitempty"` // there was a chat behind it: without that one, the task goes too
}

type recordHook struct {
	Config pushConfig `json:"config"`
	Legacy bool       `json:"legacy,omitempty"`
}

// records keeps tasks on the disk, a file each, for the next server of the same folder. Nil
// keeps none.
type records struct {
	dir  string
	lock *flock.Flock
	log  *slog.Logger
}

// errTaken is a folder of records that another server has.
var errTaken = errors.New("another eca serve of this folder keeps its tasks there")

// openRecords takes a folder, which need not exist. Only one server has it.
func openRecords(dir string, log *slog.Logger) (*records, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	r := &records{dir: dir, lock: flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600)), log: log}
	held, err := r.lock.TryLock()
	if err == nil && !held {
		err = errTaken
	}
	if err != nil {
		_ = r.lock.Close()
		return nil, err
	}
	return r, nil
}

func (r *records) close() {
	if r != nil {
		_ = r.lock.Close()
	}
}

const recordSuffix = ".json"

func (r *records) path(id string) string { return filepath.Join(r.dir, id+recordSuffix) }

// save replaces what is kept of a task. If that fails the task goes on: it is only unknown,
// or older, to the next server.
func (r *records) save(rec record) {
	if r == nil {
		return
	}
	body, err := rec.encode()
	if err == nil {
		err = atomicfile.Write(r.path(rec.Task.ID), body, 0o600)
	}
	if err != nil {
		r.log.Warn("a task is not kept", "task", rec.Task.ID, "err", err)
	}
}

func (r *records) remove(id string) {
	if r == nil {
		return
	}
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		r.log.Warn("a task's record can not be removed", "task", id, "err", err)
	}
}

// load reads all records, the task that changed first in front. What is none is left alone,
// but for what a killed server had not written to the end.
func (r *records) load() []record {
	if r == nil {
		return nil
	}
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.log.Warn("tasks of before are not known", "err", err)
	}
	var out []record
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), recordSuffix+"-") {
			_ = os.Remove(filepath.Join(r.dir, e.Name())) // else it is in the way of nobody
			continue
		}
		id, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok || strings.HasPrefix(id, ".") || !e.Type().IsRegular() {
			continue
		}
		rec, err := readRecord(filepath.Join(r.dir, e.Name()))
		if err == nil && rec.Task.ID != id {
			err = fmt.Errorf("it is of task %q", rec.Task.ID)
		}
		if err != nil {
			r.log.Warn("a task of before is not known", "file", e.Name(), "err", err)
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

// decodeRecord reads a record. A task must have what makes it one.
func decodeRecord(body []byte) (record, error) {
	var rec record
	if err := json.Unmarshal(body, &rec); err != nil {
		return record{}, err
	}
	t := rec.Task
	if t.ID == "" || t.ContextID == "" || !slices.Contains(states(), t.Status.State) {
		return record{}, fmt.Errorf("it is no task: id %q, context %q, state %q", t.ID, t.ContextID, t.Status.State)
	}
	return rec, nil
}

// encode writes a record with as much of its task as is kept: files that callers sent go
// first, then the oldest of what was said, then the end of the answer.
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
	if len(t.Artifacts) > 0 && len(t.Artifacts[0].Parts) > 0 && jsonSize(t.Artifacts) > maxRecord/2 {
		a := t.Artifacts[0]
		text, _ := a.Parts[0]["text"].(string)
		a.Parts = []part{{"text": strings.ToValidUTF8(text[:min(len(text), maxRecord/8)], "") + "\n[The rest is in the chat only.]"}}
		t.Artifacts = []artifact{a}
	}
	if body, err = json.Marshal(rec); err == nil && len(body) > maxRecord {
		t.Status.Message = nil // a call with huge arguments that waited
		body, err = json.Marshal(rec)
	}
	return body, err
}

func withoutFiles(parts []part) []part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		if raw, ok := p["raw"].(string); ok {
			parts[i] = maps.Clone(p)
			delete(parts[i], "raw")
			parts[i]["text"] = fmt.Sprintf("[A file of %d bytes, which is not kept.]", len(raw)*3/4)
		}
	}
	return parts
}

func jsonSize(v any) int {
	body, _ := json.Marshal(v)
	return len(body)
}
