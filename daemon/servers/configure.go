package servers

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
)

// This file edits the configured MCP servers in the user's files: each value in the file that
// defines it, and a new server in the file that the client selects. An edit is in effect when the
// function returns.

// AddMCPServer adds a server to the global configuration, or to that of a workspace folder: root,
// or the first folder if root is empty. It returns the file. A server in a folder that is not
// trusted has no effect yet.
func (sv *Servers) AddMCPServer(name string, s config.MCPServer, inWorkspace bool, root string) (file string, err error) {
	if err := config.CheckServerName(name); err != nil {
		return "", err
	}
	if err := config.CheckTransport(s.Command, s.URL); err != nil {
		return "", err
	}
	if _, exists := sv.opts.Config().MCPServers[name]; exists {
		return "", fmt.Errorf("there is an MCP server %s already", name)
	}
	if file, err = sv.fileFor(inWorkspace, root); err != nil {
		return "", err
	}
	return file, sv.agreements.editWithAgreement(name, func() error { return sv.opts.Edits.Edit(file, config.Set(s, "mcpServers", name)) })
}

// fileFor returns the file for a new server.
func (sv *Servers) fileFor(inWorkspace bool, root string) (string, error) {
	cfg, roots := sv.opts.Config(), sv.roots()
	switch {
	case !inWorkspace:
		return cfg.Owner(), nil
	case sv.opts.ConfigFile != "":
		return "", fmt.Errorf("with --config-file, workspaces' files are not read; %s is", sv.opts.ConfigFile)
	case root == "" && len(roots) > 0:
		root = roots[0]
	case root == "" || !slices.Contains(roots, filepath.Clean(root)):
		return "", fmt.Errorf("%q is not a workspace folder", root)
	}
	return filepath.Join(root, ".eca", "config.json"), nil
}

// UpdateMCPServer changes the command or URL of a server, and the settings that belong to them.
// Empty fields of s change nothing; args, if not nil, replaces the arguments. Setting a URL removes
// the command and its arguments, and the other way round.
func (sv *Servers) UpdateMCPServer(name string, s config.MCPServer, args *[]string) error {
	if _, exists := sv.opts.Config().MCPServers[name]; !exists {
		return unknownMCPServer(name)
	}
	if s.Command != "" || s.URL != "" {
		if err := config.CheckTransport(s.Command, s.URL); err != nil {
			return err
		}
	}
	return sv.agreements.editWithAgreement(name, func() error { return sv.updateMCPServer(name, s, args) })
}

func (sv *Servers) updateMCPServer(name string, s config.MCPServer, args *[]string) error {
	var drop []string
	switch {
	case s.URL != "":
		drop, args, s.Env = []string{"command", "args", "env"}, nil, nil
	case s.Command != "":
		drop, s.Headers = []string{"url", "headers", "clientId", "clientSecret", "oauthPort", "authScope"}, nil
	}
	changes := map[string][]config.Change{} // by file, so that each file is changed in one step
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
			file := sv.mcpOwner(name, c.key)
			changes[file] = append(changes[file], config.Set(c.value, "mcpServers", name, c.key))
		}
	}
	for _, key := range drop {
		file := sv.mcpOwner(name, key)
		changes[file] = append(changes[file], config.Delete("mcpServers", name, key))
	}
	for _, file := range slices.Sorted(maps.Keys(changes)) {
		if err := sv.opts.Edits.Edit(file, changes[file]...); err != nil {
			return err
		}
	}
	for _, key := range drop { // remove them from lower layers too
		if err := sv.opts.Edits.Drop("mcpServers", name, key); err != nil {
			return err
		}
	}
	return nil
}

// EnableMCPServer enables or disables a server.
func (sv *Servers) EnableMCPServer(name string, enabled bool) error {
	s, exists := sv.opts.Config().MCPServers[name]
	if !exists || s.Disabled == !enabled {
		return nil
	}
	return sv.opts.Edits.Edit(sv.mcpOwner(name, "disabled"), config.Set(!enabled, "mcpServers", name, "disabled"))
}

// RemoveMCPServer removes a server from all files.
func (sv *Servers) RemoveMCPServer(name string) error {
	s, exists := sv.opts.Config().MCPServers[name]
	if !exists {
		return unknownMCPServer(name)
	}
	key := sv.agreements.key(name)
	if err := sv.opts.Edits.Drop("mcpServers", name); err != nil {
		return err
	}
	sv.agreements.forget(name, key)
	if _, exists := sv.opts.Config().MCPServers[name]; exists {
		origin, _ := sv.opts.Config().Origin("mcpServers", name)
		return fmt.Errorf("the MCP server %s comes from %s, where it cannot be removed", name, origin)
	}
	if err := sv.opts.ForgetTools(name); err != nil {
		return fmt.Errorf("the MCP server %s is removed, but the remembered approvals of its tools are not: %w", name, err)
	}
	sv.logins.Cancel(name)
	if _, err := sv.forgetLogin(name, s); err != nil {
		return fmt.Errorf("the MCP server %s is removed, but its login is not: %w", name, err)
	}
	sv.mu.Lock()
	defer sv.mu.Unlock()
	delete(sv.lastAccounts, name)
	return nil
}

// mcpOwner returns the file in which to change a value of a server: the file that sets the value,
// otherwise the file that defines the server.
func (sv *Servers) mcpOwner(name, key string) string {
	cfg := sv.opts.Config()
	if _, ok := cfg.Origin("mcpServers", name, key); ok {
		return cfg.Owner("mcpServers", name, key)
	}
	return cfg.Owner("mcpServers", name)
}

func unknownMCPServer(name string) error { return fmt.Errorf("there is no MCP server %.128q", name) }
