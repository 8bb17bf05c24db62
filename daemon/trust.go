package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/trust"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// What a workspace's own files run, redirect or loosen does nothing until the user trusts
// these files as they are (docs/trust.md). Package config says what that is, package
// extensions holds back the texts, internal/trust keeps what the user said; here they are
// asked.

// trustsLocked says whether the user trusts a unit.
func (d *Daemon) trustsLocked(u config.Unit) bool {
	return d.trust.Trusts(u.Root, u.Key(), u.Sum)
}

// trustsHooks says whether hooks of a file in another format may run, and adds the unit to
// the configuration's if the file is a workspace's. It is called by loadLocked.
func (d *Daemon) trustsHooks(cfg *config.Loaded, roots []string, file string, defs []hooks.Definition) bool {
	for _, root := range roots {
		if rel, err := filepath.Rel(root, file); err != nil || !filepath.IsLocal(rel) || len(defs) == 0 {
			continue
		}
		var needs []config.Need
		var value []any
		for _, def := range defs {
			needs = append(needs, config.Need{What: "hooks." + def.Name})
			var hook any
			if raw, err := json.Marshal(def.Hook); err == nil && json.Unmarshal(raw, &hook) == nil {
				value = append(value, hook)
			}
		}
		u := config.ForeignUnit(root, file, needs, value)
		u.Trusted = d.trustsLocked(u)
		cfg.Units, cfg.Files = append(cfg.Units, u), append(cfg.Files, u.Files...)
		return u.Trusted
	}
	return true
}

// Units lists what needs trust in the workspace folders, trusted or not. Without
// Extensions it is about the configuration alone.
func (d *Daemon) Units() []config.Unit {
	var out []config.Unit
	if cfg := d.config.Load(); cfg != nil {
		out = append(out, cfg.Units...)
	}
	if set := d.set.Load(); set != nil {
		out = append(out, set.Units...)
	}
	slices.SortStableFunc(out, func(a, b config.Unit) int { return strings.Compare(a.File, b.File) })
	return out
}

// Untrusted lists what does nothing because it is not trusted.
func (d *Daemon) Untrusted() []config.Unit {
	return slices.DeleteFunc(d.Units(), func(u config.Unit) bool { return u.Trusted })
}

// Trust records that the user trusts units as they were when they were listed, and puts
// them into effect.
func (d *Daemon) Trust(units []config.Unit) error {
	byRoot, shown := map[string]map[string]string{}, map[string]map[string]trust.Shown{}
	for _, u := range units {
		if byRoot[u.Root] == nil {
			byRoot[u.Root], shown[u.Root] = map[string]string{}, map[string]trust.Shown{}
		}
		byRoot[u.Root][u.Key()], shown[u.Root][u.Key()] = u.Sum, trust.Shown{Text: u.Text, Parts: u.Parts}
	}
	for root, sums := range byRoot {
		if err := d.record.Trust(root, sums, shown[root]); err != nil {
			return err
		}
	}
	d.reload()
	select {
	case d.trusted <- struct{}{}:
	default:
	}
	return nil
}

// TrustText shows what a unit needs trust for: all of it, or what changed since the user
// trusted it last. The text is the file's own, with nothing left out: what is hidden from the
// user could be what they would not agree to.
func (d *Daemon) TrustText(u config.Unit) string {
	view, err := d.record.Read()
	before := view.Shown(u.Root, u.Key())
	if err != nil || before == "" || before == u.Text {
		return u.Text
	}
	return strings.TrimPrefix(udiff.Unified("trusted", "now", before, u.Text), "--- trusted\n+++ now\n")
}

// ChangedSinceTrust says what changed in units since the user trusted them last; empty for
// what never was trusted.
func (d *Daemon) ChangedSinceTrust(units ...config.Unit) string {
	view, err := d.record.Read()
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
func (d *Daemon) Revoke(root string) (revoked []string, err error) {
	revoked, err = d.record.Revoke(root)
	if err == nil {
		d.reload()
	}
	return revoked, err
}

// TrustedFolders lists what the user trusts.
func (d *Daemon) TrustedFolders() (map[string]trust.Folder, error) {
	view, err := d.record.Read()
	return view.Folders(), err
}

// mayRenew says whether an edit of ours keeps a file trusted: if it is, as it is now, or
// has nothing that needs trust. What others added since is not ours to trust.
func (d *Daemon) mayRenew(file string) bool {
	d.reload()
	return !slices.ContainsFunc(d.Untrusted(), func(u config.Unit) bool { return u.File == file })
}

// renewTrust trusts a file that we have just changed as the user wanted.
func (d *Daemon) renewTrust(file string) error {
	units := slices.DeleteFunc(d.Untrusted(), func(u config.Unit) bool { return u.File != file })
	if len(units) == 0 {
		return nil
	}
	return d.Trust(units)
}

// trustLabel is the answer that trusts.
const trustLabel = "Trust it"

// AskTrust asks the user, in a chat, whether what the workspace brings along may act, and
// whether MCP servers may that are not what they were. Each
// content is asked about once; the chat goes on meanwhile without. Where the client can
// not ask, the notices tell instead.
func (d *Daemon) AskTrust(ctx context.Context, chatID string) {
	questions := d.client.Load().questions
	if questions == nil {
		return
	}
	d.askUnits(ctx, chatID, questions)
	d.askChanged(ctx, chatID, questions)
}

// askUnits asks about the workspace's files.
func (d *Daemon) askUnits(ctx context.Context, chatID string, questions ask.Client) {
	d.mu.Lock()
	units := slices.DeleteFunc(d.Untrusted(), func(u config.Unit) bool { return d.asked[u.Sum] })
	for _, u := range units {
		d.asked[u.Sum] = true
	}
	d.mu.Unlock()
	if len(units) == 0 {
		return
	}
	text := "This folder brings along configuration that can run programs or redirect what you send."
	if changed := d.ChangedSinceTrust(units...); changed != "" {
		text += " You trusted it before; since then: " + changed + "."
	}
	answer, err := questions.Ask(ctx, ask.Question{
		ChatID: chatID,
		Text:   text + " Do you trust it as it is now?\n\n" + listUnits(units),
		Options: []ask.Option{
			{Label: trustLabel, Description: "It acts from now on, until it changes"},
			{Label: "Not now", Description: "It stays without effect; `eca trust` in a terminal changes that"},
		},
	})
	switch {
	case err != nil:
		if ctx.Err() == nil {
			d.opts.Log.Warn("the user could not be asked about trust", "err", err)
		}
	case !answer.Cancelled && answer.Text == trustLabel:
		if err := d.Trust(units); err != nil {
			d.opts.Log.Error("trust could not be recorded", "err", err)
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

// checkTrust says what of the workspace's files has an effect.
func (d *Daemon) checkTrust(context.Context) []doctor.Finding {
	d.Extensions()
	var out []doctor.Finding
	for _, u := range d.Units() {
		if u.Trusted {
			out = append(out, finding(doctor.OK, "trust", "%s is trusted as it is", u.File))
			continue
		}
		if changed := d.ChangedSinceTrust(u); changed != "" {
			out = append(out, finding(doctor.Warning, "trust", "%s: you trusted this before; since then: %s. It has no effect until you trust it again (eca trust %q)", u.File, changed, u.Root))
			continue
		}
		out = append(out, finding(doctor.Note, "trust", "%s: without effect until trusted (eca trust %q): %s", u.File, u.Root, strings.ReplaceAll(listUnits([]config.Unit{u}), "\n", " ")))
	}
	if len(out) == 0 {
		out = append(out, finding(doctor.OK, "trust", "the workspace has nothing that needs it"))
	}
	return out
}

// trustNotice tells users who can not be asked what is without effect.
func (d *Daemon) trustNotice() string {
	units := d.Untrusted()
	if len(units) == 0 || d.client.Load().questions != nil {
		return ""
	}
	var folders []string
	for _, u := range units {
		if dir := fmt.Sprintf("eca trust %q", u.Root); !slices.Contains(folders, dir) {
			folders = append(folders, dir)
		}
	}
	text := "This folder brings along configuration that can run programs or redirect what you send. It has no effect until you trust it, in a terminal: "
	if changed := d.ChangedSinceTrust(units...); changed != "" {
		text = "You trusted this folder before; since then: " + changed + ". What its configuration runs or redirects has no effect until you trust it again, in a terminal: "
	}
	return text + strings.Join(folders, "; ") + "\n" + listUnits(units)
}
