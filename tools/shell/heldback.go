package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// heldBack is a protected place that a command made and that was moved away.
type heldBack struct {
	root, name string // where it was
	at         string // where it is
}

// holdBack moves protected places that are new away from the workspace, and says so.
func (o Options) holdBack(places sandbox.Places, callID string) (moved []heldBack, note string) {
	var failed []string
	for _, path := range places.Since() {
		if freshRepository(path) {
			continue
		}
		root, ok := places.Root(path)
		if !ok {
			failed = append(failed, path)
			continue
		}
		h, err := o.moveAway(root, strings.TrimPrefix(path, root+"/"), callID)
		if err != nil {
			failed = append(failed, fmt.Sprintf("%s (%v)", path, err))
			continue
		}
		moved = append(moved, h)
	}
	var lines []string
	for _, h := range moved {
		lines = append(lines, fmt.Sprintf("[sandbox: the command made %s, which other programs obey or run; it was moved to %s]", filepath.Join(h.root, h.name), h.at))
	}
	for _, path := range failed {
		lines = append(lines, fmt.Sprintf("[sandbox: the command made %s, which other programs obey or run; it could not be moved away: look at it]", path))
	}
	return moved, strings.Join(lines, "\n")
}

// afterwards moves away which protected places a command made, and asks the user whether they come
// back.
func (o Options) afterwards(ctx context.Context, call tools.Call, places sandbox.Places) string {
	moved, note := o.holdBack(places, call.ID)
	if len(moved) == 0 || o.Ask == nil || call.Subagent() || ctx.Err() != nil {
		return note
	}
	var names []string
	for _, h := range moved {
		names = append(names, filepath.Join(h.root, h.name))
	}
	const keep = "Keep"
	if o.Ask(ctx, call, fmt.Sprintf("The command made %s, which other programs obey or run. Keep it?", strings.Join(names, ", ")), []Choice{
		{keep, "Put it back where the command made it."},
		{"Hold back", "Leave it in eca's state folder."},
	}) != keep {
		return note
	}
	for _, h := range moved {
		if err := h.restore(); err != nil {
			return note + fmt.Sprintf("\n[sandbox: the user wants to keep it, but it could not be put back: %v]", err)
		}
	}
	return fmt.Sprintf("[sandbox: the command made %s; the user keeps it]", strings.Join(names, ", "))
}

// moveAway moves a file or folder of a root to a folder of its own below o.HeldBack. Links on the
// way are not followed out of the root.
func (o Options) moveAway(root, name, callID string) (heldBack, error) {
	if o.HeldBack == "" {
		return heldBack{}, errors.New("there is no folder for it")
	}
	if err := os.MkdirAll(o.HeldBack, 0o700); err != nil {
		return heldBack{}, err
	}
	dir, err := os.MkdirTemp(o.HeldBack, filepath.Base(root)+"-*")
	if err != nil {
		return heldBack{}, err
	}
	h := heldBack{root, name, filepath.Join(dir, filepath.Base(name))}
	return h, between(root, name, dir, filepath.Base(name))
}

func (h heldBack) restore() error {
	return between(filepath.Dir(h.at), filepath.Base(h.at), h.root, h.name)
}

// between moves a file or folder of one root into another, where nothing is overwritten.
func between(fromRoot, fromName, toRoot, toName string) error {
	from, err := os.OpenRoot(fromRoot)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenRoot(toRoot)
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := to.Lstat(toName); err == nil {
		return fmt.Errorf("%s is there already", filepath.Join(toRoot, toName))
	}
	if err := renameBetween(from, fromName, to, toName); err == nil {
		return nil
	}
	if err := copyBetween(from, fromName, to, toName); err != nil {
		return err
	}
	return from.RemoveAll(fromName)
}

// copyBetween copies a file, link or folder.
func copyBetween(from *os.Root, fromName string, to *os.Root, toName string) error {
	info, err := from.Lstat(fromName)
	if err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		data, err := from.ReadFile(fromName)
		if err != nil {
			return err
		}
		return to.WriteFile(toName, data, info.Mode().Perm())
	case info.Mode()&os.ModeSymlink != 0:
		link, err := from.Readlink(fromName)
		if err != nil {
			return err
		}
		return to.Symlink(link, toName)
	case !info.IsDir():
		return nil // a pipe or socket is not worth keeping
	}
	if err := to.Mkdir(toName, 0o700); err != nil {
		return err
	}
	dir, err := from.Open(fromName)
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	_ = dir.Close()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyBetween(from, filepath.Join(fromName, e.Name()), to, filepath.Join(toName, e.Name())); err != nil {
			return err
		}
	}
	return to.Chmod(toName, info.Mode().Perm())
}
