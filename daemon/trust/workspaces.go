// Package trust asks the user whether the configuration in a workspace may act, and records
// the answers.
//
// What a workspace's own files run, redirect or loosen has no effect until the user trusts
// these files as they are (docs/trust.md). Package config says what that is, package
// extensions holds back the texts, internal/consent keeps what the user said. Here the user is
// asked, once about each content, and our own edits of a trusted file keep it trusted.
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
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Options are what Workspaces needs. None may be nil.
type Options struct {
	Record    *consent.FolderStore
	Units     func() []config.Unit // what needs trust now, trusted or not
	Extend    func()               // reads the extensions, which have units as well
	Reload    func() bool          // puts what is recorded into effect
	Changed   func()               // tells clients
	Questions func() ask.Client    // nil: the client shows none
	Log       *slog.Logger
}

// Workspaces records which configuration of workspaces the user trusts.
type Workspaces struct {
	opts Options

	mu    sync.Mutex      // guards asked
	asked map[string]bool // sums of units the user was asked about
}

// New returns what the user trusts.
func New(o Options) *Workspaces { return &Workspaces{opts: o, asked: map[string]bool{}} }

// untrusted lists what has no effect because it is not trusted.
func (w *Workspaces) untrusted() []config.Unit {
	return slices.DeleteFunc(w.opts.Units(), func(u config.Unit) bool { return u.Trusted })
}

// unasked lists the untrusted units that the user was not asked about, and notes that they are.
func (w *Workspaces) unasked() []config.Unit {
	w.mu.Lock()
	defer w.mu.Unlock()
	units := slices.DeleteFunc(w.untrusted(), func(u config.Unit) bool { return w.asked[u.Sum] })
	for _, u := range units {
		w.asked[u.Sum] = true
	}
	return units
}

// Trust records that the user trusts units as they were when they were listed, and puts
// them into effect.
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

// TrustText shows what a unit needs trust for: all of it, or what changed since the user
// trusted it last. The text is the file's own, with nothing left out: what is hidden from the
// user could be what they would not agree to.
func (w *Workspaces) TrustText(u config.Unit) string {
	view, err := w.opts.Record.Read()
	before := view.Shown(u.Root, u.Key())
	if err != nil || before == "" || before == u.Text {
		return u.Text
	}
	return strings.TrimPrefix(udiff.Unified("trusted", "now", before, u.Text), "--- trusted\n+++ now\n")
}

// ChangedSinceTrust says what changed in units since the user trusted them last; empty for
// what never was trusted.
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

// Revoke forgets that a folder, and those below it, are trusted.
func (w *Workspaces) Revoke(root string) (revoked []string, err error) {
	revoked, err = w.opts.Record.Revoke(root)
	if err == nil {
		w.opts.Reload()
	}
	return revoked, err
}

// TrustedFolders lists what the user trusts.
func (w *Workspaces) TrustedFolders() (consent.Folders, error) { return w.opts.Record.Read() }

// MayRenew says whether an edit of ours keeps a file trusted: if it is, as it is now, or
// has nothing that needs trust. Changes that others made since are not trusted.
func (w *Workspaces) MayRenew(file string) bool {
	w.opts.Reload()
	return !slices.ContainsFunc(w.untrusted(), func(u config.Unit) bool { return u.File == file })
}

// Renew trusts a file that we have just changed as the user wanted.
func (w *Workspaces) Renew(file string) error {
	units := slices.DeleteFunc(w.untrusted(), func(u config.Unit) bool { return u.File != file })
	if len(units) == 0 {
		return nil
	}
	return w.Trust(units)
}

// trustLabel is the answer that trusts.
const trustLabel = "Trust it"

// AskUnits asks the user, in a chat, whether the configuration in the workspace may act. Each content
// is asked about once; the chat goes on meanwhile without. Where the client cannot ask, the
// notice tells instead.
func (w *Workspaces) AskUnits(ctx context.Context, chatID string, questions ask.Client) {
	units := w.unasked()
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
			{Label: trustLabel, Description: "It acts from now on, until it changes", Grants: true},
			{Label: "Not now", Description: "It stays without effect; `eca trust` in a terminal changes that"},
		},
	})
	switch {
	case err != nil:
		if ctx.Err() == nil {
			w.opts.Log.Warn("the user could not be asked about trust", "err", err)
		}
	case !answer.Cancelled && answer.Text == trustLabel:
		if err := w.Trust(units); err != nil {
			w.opts.Log.Error("trust could not be recorded", "err", err)
		}
	}
}

// maxListed bounds what a question or a notice lists.
const maxListed = 20

// listUnits says what units would do, a line for each thing.
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

// CheckTrust says what of the workspace's files has an effect.
func (w *Workspaces) CheckTrust(context.Context) []doctor.Finding {
	w.opts.Extend()
	var out []doctor.Finding
	for _, u := range w.opts.Units() {
		if u.Trusted {
			out = append(out, doctor.Found(doctor.OK, "trust", "%s is trusted as it is", u.File))
			continue
		}
		if changed := w.ChangedSinceTrust(u); changed != "" {
			out = append(out, doctor.Found(doctor.Warning, "trust", "%s: you trusted this before; since then: %s. It has no effect until you trust it again (eca trust %q)", u.File, changed, u.Root))
			continue
		}
		out = append(out, doctor.Found(doctor.Note, "trust", "%s: without effect until trusted (eca trust %q)", u.File, u.Root))
		for _, n := range u.Needs[:min(len(u.Needs), maxListed)] {
			out = append(out, doctor.Found(doctor.Note, "not trusted", "%s %s", u.Place(n, u.Root), n.What))
		}
		if more := len(u.Needs) - maxListed; more > 0 {
			out = append(out, doctor.Found(doctor.Note, "not trusted", "and %d more", more))
		}
	}
	if _, err := w.opts.Record.Read(); len(out) == 0 && err == nil { // which is among the configuration's mistakes
		out = append(out, doctor.Found(doctor.OK, "trust", "the workspace has nothing that needs it"))
	}
	return out
}

// TrustNotice tells users who cannot be asked what is without effect.
func (w *Workspaces) TrustNotice() string {
	units := w.untrusted()
	if len(units) == 0 || w.opts.Questions() != nil {
		return ""
	}
	var folders []string
	for _, u := range units {
		if dir := fmt.Sprintf("eca trust %q", u.Root); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	text := "This folder contains configuration that can run programs or redirect what you send. It has no effect until you trust it, in a terminal: "
	if changed := w.ChangedSinceTrust(units...); changed != "" {
		text = "You trusted this folder before; since then: " + changed + ". Programs and redirections of its configuration have no effect until you trust it again, in a terminal: "
	}
	return text + strings.Join(folders, "; ") + "\n" + listUnits(units)
}
