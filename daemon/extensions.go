package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/changes"
	"github.com/seed-dec29ce4/eca/extensions"
)

// Extensions returns the extensions that users added in files, as of the last turn or change. The
// first call reads them; it must not come before the answer to initialize, which would have to
// wait.
func (d *Daemon) Extensions() *extensions.Set {
	if set := d.current().extensions; set != nil {
		return set
	}
	d.refreshExtensions()
	return d.current().extensions
}

// Misnamed returns findings for files and folders that are ignored because of their names, such
// as a command with the name of a native one.
func (d *Daemon) Misnamed() []config.Finding {
	d.mu.Lock()
	in := d.extensionInputs(d.current().inputs)
	d.mu.Unlock()
	var out []config.Finding
	for _, p := range extensions.Misnamed(in) {
		out = append(out, config.Finding{Source: p.Source, Severity: config.SeverityWarning, Message: p.Cause})
	}
	for _, c := range d.Extensions().Commands {
		if command.Native(c.Name) {
			message := fmt.Sprintf("eca has its own command /%s, so this file has no effect; rename it", c.Name)
			out = append(out, config.Finding{Source: c.File, Severity: config.SeverityWarning, Message: message})
		}
	}
	return out
}

// RemoveUntrustedMCPServer removes an MCP server from files of the workspace that have no effect because
// they are not trusted. It returns the changed files.
func (d *Daemon) RemoveUntrustedMCPServer(name string) (files []string, err error) {
	path := []string{"mcpServers", name}
	for _, u := range d.Untrusted() {
		if !slices.ContainsFunc(u.Needs, func(n config.Need) bool { return n.What == config.KeyPath(path) }) {
			continue
		}
		if err := d.edits.Edit(u.File, config.Delete(path...), config.DeleteEmpty(path[0])); err != nil {
			return files, err
		}
		files = append(files, u.File)
	}
	return files, nil
}

// UntrustedMistakes lists the mistakes that eca would find in the workspace's untrusted files if the
// user trusted them. The files still have no effect, and their commands are not run.
func (d *Daemon) UntrustedMistakes() []config.Finding {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.current()
	files := map[string]bool{}
	for _, u := range s.untrusted() {
		files[u.File] = true
	}
	if len(files) == 0 {
		return nil
	}
	commands := config.NewCommands(func(context.Context, string) (string, error) { return "", nil }, config.CommandTime)
	defer commands.Close()
	in := s.inputs
	in.config, in.trustAll = nil, true
	in.config = d.load(in, commands)
	in.claudeHooks = d.readClaudeHooks(in)
	d.newSnapshot(in) // adds the mistakes that it finds to in.config
	return slices.DeleteFunc(in.config.Mistakes(), func(f config.Finding) bool { return !files[f.Source] })
}

// refreshExtensions reads changed files of extensions and of the configuration again. It runs at the start
// of each turn, so that a change applies from the next turn on even if the system does not report it, or
// reports it late.
func (d *Daemon) refreshExtensions() {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.current()
	in, reread := old.inputs, d.filesChanged()
	if reread {
		in = d.readLocked(in)
	}
	in, changed := d.extendLocked(in)
	switch {
	case reread:
		if d.publishLocked(d.newSnapshot(in), changed) {
			d.changes.Publish(changes.Configuration)
		}
	case changed: // agents and tools may differ
		d.publishLocked(d.newSnapshot(in), true)
		d.changes.Publish(changes.Extensions)
	case in.extensions != old.extensions || in.plugins != old.plugins:
		d.amendLocked(func(s *Snapshot) { s.extensions, s.plugins = in.extensions, in.plugins })
	}
}
