package daemon

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/config"
)

// The configured MCP servers are edited here, in the users' own files: each value where
// it comes from, and a new server where the client wants it. What is edited is in effect
// when the function returns.

// AddMCPServer adds a server to the global configuration, or to that of a workspace
// folder: the given one, else the first.
func (d *Daemon) AddMCPServer(name string, s config.MCPServer, inWorkspace bool, root string) error {
	if err := checkMCPName(name); err != nil {
		return err
	}
	if err := config.CheckTransport(s.Command, s.URL); err != nil {
		return err
	}
	if _, exists := d.Config().MCPServers[name]; exists {
		return fmt.Errorf("there is an MCP server %s already", name)
	}
	file, err := d.fileFor(inWorkspace, root)
	if err != nil {
		return err
	}
	return d.renewing(name, func() error { return d.edit(file, config.Set(s, "mcpServers", name)) })
}

// fileFor returns the file for what is new in the configuration.
func (d *Daemon) fileFor(inWorkspace bool, root string) (string, error) {
	cfg, roots := d.Config(), d.workspace.Load().Roots()
	switch {
	case !inWorkspace:
		return cfg.Owner(), nil
	case d.opts.ConfigFile != "":
		return "", fmt.Errorf("with --config-file, workspaces' files are not read; %s is", d.opts.ConfigFile)
	case root == "" && len(roots) > 0:
		root = roots[0]
	case root == "" || !slices.Contains(roots, filepath.Clean(root)):
		return "", fmt.Errorf("%q is not a workspace folder", root)
	}
	return filepath.Join(root, ".eca", "config.json"), nil
}

// UpdateMCPServer changes how a server is reached. What s leaves empty stays; args, if
// not nil, replaces the arguments. A server that is given a url loses its command and
// the like, and the other way round.
func (d *Daemon) UpdateMCPServer(name string, s config.MCPServer, args *[]string) error {
	if _, exists := d.Config().MCPServers[name]; !exists {
		return unknownMCPServer(name)
	}
	if s.Command != "" || s.URL != "" {
		if err := config.CheckTransport(s.Command, s.URL); err != nil {
			return err
		}
	}
	return d.renewing(name, func() error { return d.updateMCPServer(name, s, args) })
}

func (d *Daemon) updateMCPServer(name string, s config.MCPServer, args *[]string) error {
	var drop []string
	switch {
	case s.URL != "":
		drop, args, s.Env = []string{"command", "args", "env"}, nil, nil
	case s.Command != "":
		drop, s.Headers = []string{"url", "headers", "clientId", "clientSecret", "oauthPort", "authScope"}, nil
	}
	changes := map[string][]config.Change{} // by file, so that the usual one changes in one step
	for _, c := range []struct {
		key   string
		given bool
		value any
	}{
		{"url", s.URL != "", s.URL},
		{"command", s.Command != "", s.Command},
		{"args", args != nil, args},
		{"env", s.Env != nil, s.Env},
		{"headers", s.Headers != nil, s.Headers},
	} {
		if c.given {
			file := d.mcpOwner(name, c.key)
			changes[file] = append(changes[file], config.Set(c.value, "mcpServers", name, c.key))
		}
	}
	for _, key := range drop {
		file := d.mcpOwner(name, key)
		changes[file] = append(changes[file], config.Delete("mcpServers", name, key))
	}
	for _, file := range slices.Sorted(maps.Keys(changes)) {
		if err := d.edit(file, changes[file]...); err != nil {
			return err
		}
	}
	for _, key := range drop { // from lower layers
		if err := d.drop("mcpServers", name, key); err != nil {
			return err
		}
	}
	return nil
}

// EnableMCPServer enables or disables a server.
func (d *Daemon) EnableMCPServer(name string, enabled bool) error {
	s, exists := d.Config().MCPServers[name]
	if !exists || s.Disabled == !enabled {
		return nil
	}
	return d.edit(d.mcpOwner(name, "disabled"), config.Set(!enabled, "mcpServers", name, "disabled"))
}

// RemoveMCPServer removes a server from all files.
func (d *Daemon) RemoveMCPServer(name string) error {
	s, exists := d.Config().MCPServers[name]
	if !exists {
		return unknownMCPServer(name)
	}
	key := d.pinKey(name)
	if err := d.drop("mcpServers", name); err != nil {
		return err
	}
	if err := d.agreed.Forget(key); err != nil {
		d.opts.Log.Warn("it is still recorded what a removed MCP server was", "server", name, "err", err)
	}
	if _, exists := d.Config().MCPServers[name]; exists {
		origin, _ := d.Config().Origin("mcpServers", name)
		return fmt.Errorf("the MCP server %s comes from %s, where it can not be removed", name, origin)
	}
	d.servedLogins.cancel(name)
	if _, err := d.forgetLogin(name, s); err != nil {
		return fmt.Errorf("the MCP server %s is removed, but its login is not: %w", name, err)
	}
	d.launched.Delete(name)
	return nil
}

// mcpOwner returns the file for a value of a server: the one it comes from, else the one
// the server comes from.
func (d *Daemon) mcpOwner(name, key string) string {
	cfg := d.Config()
	if _, ok := cfg.Origin("mcpServers", name, key); ok {
		return cfg.Owner("mcpServers", name, key)
	}
	return cfg.Owner("mcpServers", name)
}

// drop removes what is at a path of keys from every file that has it, the highest layer
// first.
func (d *Daemon) drop(path ...string) error {
	for last := ""; ; {
		origin, ok := d.Config().Origin(path...)
		if !ok || origin.Source == last || origin.Source != d.Config().Owner(path...) {
			return nil
		}
		last = origin.Source
		if err := d.edit(last, config.Delete(path...)); err != nil {
			return err
		}
	}
}

// edit changes a configuration file and puts it into effect.
func (d *Daemon) edit(file string, changes ...config.Change) error {
	switch {
	case d.Config().PureConfig:
		return errors.New("the configuration comes from the editor alone (pureConfig); no file is in effect")
	case file == "":
		return errors.New("there is no configuration file to change")
	}
	renew := d.mayRenew(file)
	if err := config.EditFile(file, changes...); err != nil {
		return err
	}
	d.reload()
	if renew {
		return d.renewTrust(file)
	}
	return nil
}

// maxMCPName bounds names of servers: they are part of the tools' names.
const maxMCPName = 128

func checkMCPName(name string) error {
	bad := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	switch {
	case name == "":
		return errors.New("the MCP server has no name")
	case len(name) > maxMCPName || strings.ContainsFunc(name, bad):
		return fmt.Errorf("the name of an MCP server must be at most %d characters without spaces", maxMCPName)
	case strings.EqualFold(name, "eca"):
		return errors.New("eca is the name of the native tools; name the MCP server otherwise")
	}
	return nil
}

func unknownMCPServer(name string) error { return fmt.Errorf("there is no MCP server %.128q", name) }
