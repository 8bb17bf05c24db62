package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	slash "github.com/seed-dec29ce4/eca/chat/command"
)

const pluginHelp = `Shows, installs, uninstalls and updates plugins: agents, skills, rules, commands, hooks and MCP
servers from sources that your configuration names. A plugin's hooks, MCP servers and
configuration run with your rights, so install only what you trust. Running editors pick up
changes with their next prompt.`

// pluginCommand is `eca plugin`. Its subcommands do the same as the slash commands of these names.
func pluginCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Show, install, uninstall or update plugins",
		Long:  pluginHelp,
	}
	add := func(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, p slash.Plugins, arg string) (string, error)) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: args,
			RunE: func(cmd *cobra.Command, args []string) error {
				arg := ""
				if len(args) > 0 {
					arg = args[0]
				}
				return withPlugins(cmd.Context(), *sf, stdout, stderr, func(ctx context.Context, p slash.Plugins) (string, error) { return run(ctx, p, arg) })
			},
		})
	}
	add("list [SOURCE]", "Show what is installed and what the sources offer; SOURCE is fetched if eca does not have it yet", cobra.MaximumNArgs(1), slash.ListPlugins)
	add("install NAME[@SOURCE]", "Install a plugin", cobra.ExactArgs(1), slash.InstallPlugin)
	add("uninstall NAME[@SOURCE]", "Uninstall a plugin", cobra.ExactArgs(1), func(_ context.Context, p slash.Plugins, ref string) (string, error) {
		return slash.UninstallPlugin(p, ref)
	})
	add("update SOURCE", "Fetch the newest plugins of a source", cobra.ExactArgs(1), slash.UpdatePlugins)
	return cmd
}

// withPlugins runs a command and prints its result.
func withPlugins(ctx context.Context, sf serverFlags, stdout, stderr io.Writer, fn func(context.Context, slash.Plugins) (string, error)) error {
	sf.logLevel = "error" // the command reports other problems in its output
	d, err := daemonForCwd(sf, stderr)
	if err != nil {
		return err
	}
	defer d.Close()
	printBroken(d, stderr)
	text, err := fn(ctx, d.Plugins())
	if err != nil {
		return err
	}
	text = strings.NewReplacer("`/plugin-install <name>`", "`eca plugin install NAME`", "`/plugins ", "`eca plugin list ").Replace(text)
	_, err = io.WriteString(stdout, d.Clean(text))
	return err
}
