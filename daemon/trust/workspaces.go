// Package trust asks the user whether to trust the configuration in a workspace, and records the
// answers.
//
// Settings in a workspace's own files that run programs, redirect requests or loosen rules have no
// effect until the user trusts the current content of these files (docs/trust.md). Package config
// finds such settings, package extensions holds back texts, and internal/consent stores the
// answers. This package asks the user, once about each content, and keeps a trusted file trusted
// when eca edits it.
//
// The entry points are New and Workspaces.AskUnits.
package trust

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Options are the dependencies of Workspaces. None may be nil.
type Options struct {
	Record    *consent.FolderStore
	Units     func() []config.Unit // the current units that need trust, trusted or not
	Extend    func()               // reads the extensions, which have units too
	Reload    func() bool          // applies the recorded trust
	Changed   func()               // notifies clients
	Questions func() ask.Client    // nil: the client shows none
	Log       *slog.Logger
}

// Workspaces records which configuration of workspaces the user trusts.
type Workspaces struct {
	opts Options

	mu    sync.Mutex      // guards asked
	asked map[string]bool // hashes of units that the user was asked about
}

// New returns Workspaces.
func New(o Options) *Workspaces { return &Workspaces{opts: o, asked: map[string]bool{}} }

// untrusted lists the units that have no effect because they are not trusted.
func (w *Workspaces) untrusted() []config.Unit {
	return slices.DeleteFunc(w.opts.Units(), func(u config.Unit) bool { return u.Trusted })
}

// unitsToAsk lists the untrusted units that the user has not been asked about, and records them as
// asked.
func (w *Workspaces) unitsToAsk() []config.Unit {
	w.mu.Lock()
	defer w.mu.Unlock()
	units := slices.DeleteFunc(w.untrusted(), func(u config.Unit) bool { return w.asked[u.Sum] })
	for _, u := range units {
		w.asked[u.Sum] = true
	}
	return units
}

// Trust records that the user trusts units with the content they had when they were listed, and
// applies that.
func (w *Workspaces) Trust(units []config.Unit) error {
	byRoot := map[string]map[string]consent.Agreed{}
	for _, u := range units {
		if byRoot[u.Root] == nil {
			byRoot[u.Root] = map[string]consent.Agreed{}
		}
		byRoot[u.Root][u.Key()] = consent.Agreed{Sum: u.Sum, Text: u.Text, Parts: u.Parts}
	}
	for root, files := range byRoot {
		if err := w.opts.Record.Trust(root, files); err != nil {
			return err
		}
	}
	w.opts.Reload()
	w.opts.Changed()
	return nil
}

// TrustText returns the text of a unit, or a diff if the user trusted an earlier version. The text
// is complete, because the user might not agree to a part that was left out.
func (w *Workspaces) TrustText(u config.Unit) string {
	view, err := w.opts.Record.Read()
	before := view.Shown(u.Root, u.Key())
	if err != nil || before == "" || before == u.Text {
		return u.Text
	}
	return strings.TrimPrefix(udiff.Unified("trusted", "now", before, u.Text), "--- trusted\n+++ now\n")
}

// ChangedSinceTrust describes what changed in units since the user trusted them. It returns "" for
// units that were never trusted.
func (w *Workspaces) ChangedSinceTrust(units ...config.Unit) string {
	view, err := w.opts.Record.Read()
	if err != nil {
		return ""
	}
	var out []string
	for _, u := range units {
		changed, before := view.Changes(u.Root, u.Key(), u.Parts)
		if before && len(changed) == 0 { // recorded by an earlier version
			name, err := filepath.Rel(u.Root, u.File)
			if err != nil {
				name = u.File
			}
			changed = []string{name + " changed"}
		}
		out = append(out, changed...)
	}
	if more := len(out) - maxListed; more > 0 {
		out = append(out[:maxListed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// Revoke removes the trust in a folder and in the folders below it.
func (w *Workspaces) Revoke(root string) (revoked []string, err error) {
	revoked, err = w.opts.Record.Revoke(root)
	if err == nil {
		w.opts.Reload()
	}
	return revoked, err
}

// TrustedFolders lists the folders and files that the user trusts.
func (w *Workspaces) TrustedFolders() (consent.Folders, error) { return w.opts.Record.Read() }

// MayRenew reports whether a file stays trusted if eca edits it: its current content is trusted, or
// has nothing that needs trust. It is false if another program has changed the file since.
func (w *Workspaces) MayRenew(file string) bool {
	w.opts.Reload()
	return !slices.ContainsFunc(w.untrusted(), func(u config.Unit) bool { return u.File == file })
}

// Renew trusts a file that eca has just changed on the user's request.
func (w *Workspaces) Renew(file string) error {
	units := slices.DeleteFunc(w.untrusted(), func(u config.Unit) bool { return u.File != file })
	if len(units) == 0 {
		return nil
	}
	return w.Trust(units)
}

// trustLabel is the answer with which the user trusts.
const trustLabel = "Trust it"

// AskUnits asks the user, in a chat, whether to trust the workspace's configuration. It asks about
// each content once; meanwhile the chat continues without it. If the client cannot show questions,
// TrustNotice informs the user instead.
func (w *Workspaces) AskUnits(ctx context.Context, chatID string, questions ask.Client) {
	units := w.unitsToAsk()
	if len(units) == 0 {
		return
	}
	text := "This folder contains configuration that can run programs or redirect what you send."
	if changed := w.ChangedSinceTrust(units...); changed != "" {
		text += " You trusted it before; since then: " + changed + "."
	}
	answer, err := questions.Ask(ctx, ask.Question{
		ChatID: chatID,
		Text:   text + " Do you trust it as it is now?\n\n" + listUnits(units),
		Options: []ask.Option{
			{Label: trustLabel, Description: "It has effect from now on, until it changes", Grants: true},
			{Label: "Not now", Description: "It has no effect; to trust it later, run `eca trust` in a terminal"},
		},
	})
	switch {
	case err != nil:
		if ctx.Err() == nil {
			w.opts.Log.Warn("cannot ask the user about trust", "err", err)
		}
	case !answer.Cancelled && answer.Text == trustLabel:
		if err := w.Trust(units); err != nil {
			w.opts.Log.Error("cannot record trust", "err", err)
		}
	}
}

// maxListed limits the number of lines in a question or a notice.
const maxListed = 20

// listUnits describes what units would do, one line for each action.
func listUnits(units []config.Unit) string {
	var lines []string
	for _, u := range units {
		for _, n := range u.Needs {
			lines = append(lines, fmt.Sprintf("- `%s` %s", u.Place(n, u.Root), n.What))
		}
	}
	if more := len(lines) - maxListed; more > 0 {
		lines = append(lines[:maxListed], fmt.Sprintf("- and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// CheckTrust reports which of the workspace's files have effect.
func (w *Workspaces) CheckTrust(context.Context) []doctor.Finding {
	w.opts.Extend()
	var out []doctor.Finding
	for _, u := range w.opts.Units() {
		if u.Trusted {
			out = append(out, doctor.Found(doctor.OK, "trust", "%s is trusted as it is", u.File))
			continue
		}
		if changed := w.ChangedSinceTrust(u); changed != "" {
			out = append(out, doctor.Found(doctor.Warning, "trust", "%s: you trusted this before; since then: %s. It has no effect until you trust it again (eca trust %s)", u.File, changed, visible.Argument(u.Root)))
			continue
		}
		out = append(out, doctor.Found(doctor.Note, "trust", "%s: without effect until trusted (eca trust %s)", u.File, visible.Argument(u.Root)))
		for _, n := range u.Needs[:min(len(u.Needs), maxListed)] {
			out = append(out, doctor.Found(doctor.Note, "not trusted", "%s %s", u.Place(n, u.Root), n.What))
		}
		if more := len(u.Needs) - maxListed; more > 0 {
			out = append(out, doctor.Found(doctor.Note, "not trusted", "and %d more", more))
		}
	}
	if _, err := w.opts.Record.Read(); len(out) == 0 && err == nil { // an error is among the configuration's mistakes
		out = append(out, doctor.Found(doctor.OK, "trust", "the workspace has nothing that needs it"))
	}
	return out
}

// TrustNotice returns a notice about untrusted configuration, for users who cannot be asked. It reads the
// extensions first, because a notice without theirs would be followed by another one.
func (w *Workspaces) TrustNotice() string {
	if w.opts.Questions() != nil {
		return ""
	}
	w.opts.Extend()
	units := w.untrusted()
	if len(units) == 0 {
		return ""
	}
	var folders []string
	for _, u := range units {
		if dir := "eca trust " + visible.Argument(u.Root); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	text := "This folder contains configuration that can run programs or redirect what you send. It has no effect until you trust it, in a terminal: "
	if changed := w.ChangedSinceTrust(units...); changed != "" {
		text = "You trusted this folder before; since then: " + changed + ". Programs and redirections of its configuration have no effect until you trust it again, in a terminal: "
	}
	return text + strings.Join(folders, "; ") + "\n" + listUnits(units)
}
