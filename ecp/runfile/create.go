package runfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// sidecars are the suffixes of the files that SQLite keeps beside a database.
func sidecars() []string { return []string{"-shm", "-wal", "-journal"} }

// Create creates a file for a run that begins. head is its report without results. It renames an
// existing file to .old. If the process is killed meanwhile, there is no incomplete file. It fails if
// another Writer of this or another process has the file open.
func Create(path string, head *report.Report) (*Writer, error) {
	return replace(path, func(unfinished string) error {
		w, err := newWriter(unfinished, "rwc")
		if err != nil {
			return err
		}
		_, err = w.conn.ExecContext(context.Background(), fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN; %s; INSERT INTO run VALUES ('',0,0,0); COMMIT", application, version, schema))
		return errors.Join(err, w.close())
	}, head)
}

// replace replaces a run file by one that create creates under another name, and opens it.
func replace(path string, create func(unfinished string) error, head *report.Report) (*Writer, error) {
	release, err := lock(path)
	if err != nil {
		return nil, err
	}
	if err := replaceLocked(path, create, head); err != nil {
		release()
		return nil, err
	}
	return newLockedWriter(path, release)
}

// replaceLocked is replace for a caller that has the lock. It does not open the file.
func replaceLocked(path string, create func(unfinished string) error, head *report.Report) error {
	unfinished := path + ".new"
	for _, suffix := range append(sidecars(), "") { // of a process that was killed
		if err := os.Remove(unfinished + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("write the run file %s: %w", path, err)
		}
	}
	doc, err := headDoc(head)
	if err == nil {
		err = create(unfinished)
	}
	if err == nil {
		err = initRun(unfinished, string(doc))
	}
	if err == nil {
		err = renameToOld(path)
	}
	if err == nil {
		err = os.Rename(unfinished, path)
	}
	if err != nil {
		_ = os.Remove(unfinished)
		return fmt.Errorf("write the run file %s: %w", path, err)
	}
	return nil
}

// lock excludes other writers of a run file, but not readers. It locks a file beside the run file,
// because SQLite uses the locks of the run file itself.
func lock(path string) (release func(), err error) {
	at := path
	if target, err := filepath.EvalSymlinks(path); err == nil {
		at = target
	}
	release, ok, err := filelock.TryTemporary(at + ".lock")
	if err == nil && !ok {
		err = errors.New("another ecp process is adding results to it; wait until it has finished, stop it, or name another run file")
	}
	if err != nil {
		return nil, fmt.Errorf("write the run file %s: %w", path, err)
	}
	return release, nil
}

// newLockedWriter opens a run file for a caller that has its lock, which Close of the Writer releases.
func newLockedWriter(path string, release func()) (*Writer, error) {
	w, err := newWriter(path, "rw")
	if err != nil {
		release()
		return nil, err
	}
	w.release = release
	return w, nil
}

// initRun stores the report of a new run file, and sets the run's usage to zero.
func initRun(path, doc string) error {
	db, err := open(path, "rw")
	if err != nil {
		return err
	}
	_, err = db.Exec("UPDATE run SET doc = ?, tokens = 0, cost = 0, unpriced = 0", doc)
	return errors.Join(err, db.Close())
}

// isRunFile reports whether a file has the header of a run file of any version.
func isRunFile(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	header := make([]byte, 72)
	_, err = io.ReadFull(f, header)
	return err == nil && bytes.HasPrefix(header, []byte("SQLite format 3\x00")) && binary.BigEndian.Uint32(header[68:]) == application
}

// renameToOld renames a run file, with the files that SQLite keeps beside it, to .old.
func renameToOld(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = safeio.ErrNotRegular
	case !isRunFile(path):
		err = errors.New("this file exists, but is not a run file; name another file")
	}
	for _, suffix := range append(sidecars(), "") {
		if err == nil {
			if err = os.Rename(path+suffix, path+".old"+suffix); suffix != "" && errors.Is(err, os.ErrNotExist) {
				err = os.Remove(path + ".old" + suffix) // it belongs to the former .old
			}
			if suffix != "" && errors.Is(err, os.ErrNotExist) {
				err = nil
			}
		}
	}
	return err
}
