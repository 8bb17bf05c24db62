package undo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/tools"
)

// scanTime is the maximum time for a scan of the workspace.
const scanTime = time.Minute

// runningCommand is a command whose end has not been recorded.
type runningCommand struct {
	chat, root string
	others     []fileName // paths that tools of other chats have written since it began
}

// Begin implements chat.Files.
func (f *Files) Begin(ctx context.Context, chatID string, call tools.Call, plan tools.Plan) (*event.UndoPoint, []string, error) {
	if f.opts.Covers == nil {
		return nil, nil, nil
	}
	if covers, err := f.opts.Covers(call, plan); !covers || err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, scanTime)
	defer cancel()
	p := &event.UndoPoint{CallID: call.ID}
	var notCovered []string
	for _, root := range outermost(call.Roots) {
		name := shortHash(chatID) + "-" + rand.Text()
		more, err := f.begin(ctx, root, name, chatID)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("it could not be undone: cannot record the files of %s: %w", root, err), f.End(*p))
		}
		p.Roots = append(p.Roots, event.UndoFolder{Path: root, Point: name})
		notCovered = append(notCovered, more...)
	}
	if len(p.Roots) == 0 {
		return nil, nil, errors.New("it could not be undone without a workspace folder")
	}
	if plan.Command != nil && plan.Command.Background {
		notCovered = append(notCovered, "what it changes later, in the background")
	}
	return p, notCovered, nil
}

func (f *Files) begin(ctx context.Context, root, name, chatID string) ([]string, error) {
	r := f.record(root)
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	notCovered, err := r.snapshot(ctx)
	if errors.Is(err, errNoRoom) {
		if err := r.prune(time.Time{}, quota/2); err != nil {
			return nil, err
		}
		notCovered, err = r.snapshot(ctx)
	}
	if err != nil {
		return nil, err
	}
	if err := r.storePoint(name, point{Chat: chatID, ID: r.id, From: r.number, Began: f.opts.Now()}); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.running[name] = &runningCommand{chat: chatID, root: root}
	f.mu.Unlock()
	return notCovered, nil
}

// End implements chat.Files.
func (f *Files) End(p event.UndoPoint) error {
	ctx, cancel := context.WithTimeout(context.Background(), scanTime)
	defer cancel()
	var errs []error
	for _, folder := range p.Roots {
		errs = append(errs, f.end(ctx, folder))
	}
	return errors.Join(errs...)
}

func (f *Files) end(ctx context.Context, folder event.UndoFolder) error {
	r := f.record(folder.Path)
	unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = r.snapshot(ctx)
	f.mu.Lock()
	var others []fileName
	if c := f.running[folder.Point]; c != nil {
		others = c.others
	}
	delete(f.running, folder.Point)
	f.mu.Unlock()
	var p point
	if err == nil {
		err = readJSON(r.pointPath(folder.Point), &p)
	}
	if err == nil && p.ID == r.id {
		p.To, p.Ended, p.Others = r.number, f.opts.Now(), others
		err = r.storePoint(folder.Point, p)
	}
	if err != nil {
		return fmt.Errorf("cannot record what the command changed in %s: %w", folder.Path, err)
	}
	return nil
}

// noteWrite records, for the running commands of other chats, that a tool of this chat writes a file.
func (f *Files) noteWrite(chatID, path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.running {
		if rel, err := filepath.Rel(c.root, path); c.chat != chatID && err == nil && filepath.IsLocal(rel) {
			c.others = append(c.others, fileName(filepath.ToSlash(rel)))
		}
	}
}

// record returns the record of a folder.
func (f *Files) record(root string) *record {
	dir := filepath.Join(f.opts.Dir(), shortHash(root))
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.records[dir]
	if r == nil {
		r = &record{
			dir: dir, root: root, ownFolders: append([]string{f.opts.Dir()}, f.opts.OwnFolders...),
			objects: objects{dir: filepath.Join(dir, "objects"), max: quota},
		}
		f.records[dir] = r
	}
	return r
}

// outermost returns folders with symlinks resolved, without folders that are inside another one.
func outermost(roots []string) []string {
	var out []string
	for _, root := range roots {
		if real, err := filepath.EvalSymlinks(root); err == nil {
			root = real
		}
		out = append(out, root)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	return slices.DeleteFunc(slices.Clone(out), func(dir string) bool {
		return slices.ContainsFunc(out, func(above string) bool {
			return above != dir && strings.HasPrefix(dir, strings.TrimSuffix(above, string(filepath.Separator))+string(filepath.Separator))
		})
	})
}

// shortHash returns a name derived from a text, for use in paths.
func shortHash(text string) string {
	const length = 32
	return artifact.Hash([]byte(text))[:length]
}
