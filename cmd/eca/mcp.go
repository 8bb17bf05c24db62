package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/mcp"
)

const mcpAddHelp = `Adds an MCP server to your configuration file, or with --workspace to .eca/config.json of this
directory. A server is either a program with its arguments, after --, or a URL:

  eca mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  eca mcp add tickets https://tickets.example/mcp --header 'Authorization=Bearer ${env:TICKETS}'

Comments in the file are kept. In your own file, paths of existing files become absolute.`

const mcpTestHelp = `Starts one MCP server with its configuration, even if it is disabled, and shows its name, version,
tools, prompts and resources. If the server has changed since you approved it, the command says
so; see eca mcp allow. The exit code is 1, with the reason, if the server does not run.`

// mcpCommand is `eca mcp`.
func mcpCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "List, add, remove, test or allow MCP servers, and log in to them",
	}
	cmd.AddCommand(mcpAddCommand(sf, stdout, stderr), mcpLoginCommand(sf, stdout, stderr), mcpLogoutCommand(sf, stdout, stderr),
		&cobra.Command{
			Use: "list", SuggestFor: []string{"ls", "show", "status"}, Short: "List the servers that are configured, and where", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				return withConfig(*sf, stderr, requireReadableConfig(func(d *daemon.Daemon) error { return listServers(d, stdout) }))
			},
		},
		&cobra.Command{
			Use: "remove NAME", SuggestFor: []string{"rm", "delete", "uninstall"}, Short: "Remove a server from all files that have it", Args: cobra.ExactArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				return withConfig(*sf, stderr, requireReadableConfig(func(d *daemon.Daemon) error {
					_, inEffect := d.Config().MCPServers[args[0]]
					files, err := d.RemoveUntrustedMCPServer(args[0])
					if err == nil && (inEffect || len(files) == 0) {
						err = d.RemoveMCPServer(args[0])
					}
					if err != nil {
						return explainUnknownServer(d, args[0], err)
					}
					_, err = fmt.Fprintf(stdout, "Removed %s.\n", args[0])
					return err
				}))
			},
		},
		&cobra.Command{
			Use: "test NAME", Short: "Start a server and show what it has, or why it does not run", Long: mcpTestHelp, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withServers(*sf, cmd, stderr, func(d *daemon.Daemon) error {
					status, err := tryServer(cmd.Context(), d, args[0], stderr)
					if err != nil {
						return err
					}
					if status.State != mcp.Running && status.Reason != "" {
						status.Reason = d.FailureReason(status)
					}
					return showServer(status, d.Presentable, stdout)
				})
			},
		},
		&cobra.Command{
			Use: "allow NAME", Short: "Approve a server's current command and tools", Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return withServers(*sf, cmd, stderr, func(d *daemon.Daemon) error { return allowServer(cmd.Context(), d, args[0], stdout, stderr) })
			},
		})
	return cmd
}

func mcpAddCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var s config.MCPServer
	var workspace bool
	var transport string
	add := &cobra.Command{
		Use: "add NAME [flags] -- COMMAND [ARG...] | NAME URL", Short: "Add a server", Long: mcpAddHelp, Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := parseServer(&s, transport, args, cmd.ArgsLenAtDash()); err != nil {
				return err
			}
			if err := checkServerFlags(s); err != nil {
				return err
			}
			return withConfig(*sf, stderr, func(d *daemon.Daemon) error {
				if _, exists := d.Config().MCPServers[args[0]]; exists {
					return fmt.Errorf("the MCP server %s exists already; remove it first: eca mcp remove %s", printable(args[0]), visible.Argument(args[0]))
				}
				var replaced []string
				if !workspace { // a server for all folders also runs in other folders
					var err error
					if replaced, err = makeAbsolute(&s); err != nil {
						return err
					}
				}
				file, err := d.AddMCPServer(args[0], s, workspace, "")
				if err != nil {
					return err
				}
				for _, text := range replaced {
					fmt.Fprintln(stdout, text)
				}
				if why := startProblem(s); why != "" {
					fmt.Fprintf(stderr, "eca mcp add: warning: %s\n", printable(why))
				}
				next := fmt.Sprintf("`eca mcp test %s` starts it.", visible.Argument(args[0]))
				if _, inEffect := d.Config().MCPServers[args[0]]; !inEffect {
					next = "It has no effect until you trust this folder: `eca trust` shows what is in it and asks."
				}
				_, err = fmt.Fprintf(stdout, "Added %s to %s. %s\n", args[0], file, next)
				return err
			})
		},
	}
	flags := add.Flags()
	flags.StringVar(&s.URL, "url", "", "address of a remote server")
	flags.StringVarP(&transport, "transport", "t", "", "http, sse or stdio; usually not needed, because the URL or the command decides")
	flags.Func("env", "environment variable `NAME=VALUE` for the program; may be repeated", pairSetter(&s.Env))
	flags.Func("header", "header `NAME=VALUE` of requests to the URL; may be repeated", pairSetter(&s.Headers))
	flags.BoolVar(&s.Disabled, "disabled", false, "add the server, but do not start it")
	flags.BoolVar(&workspace, "workspace", false, "add it for this folder only")
	return add
}

// pairSetter returns a function that adds NAME=VALUE to a map.
func pairSetter(to *map[string]string) func(string) error {
	return func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return errors.New("it must be NAME=VALUE")
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[name] = value
		return nil
	}
}

// tryServer shows mistakes in a server's configuration and starts it. While it waits, it shows the
// command or URL and the time limit.
func tryServer(ctx context.Context, d *daemon.Daemon, name string, stderr io.Writer) (mcp.Status, error) {
	for _, mistake := range d.Config().MistakesBelow("mcpServers", name) {
		fmt.Fprintf(stderr, "Configuration: %s\n", printable(mistake.String()))
	}
	if s, known := d.Config().MCPServers[name]; known && config.CheckTransport(s.Command, s.URL) == nil {
		how := strings.Join(append([]string{s.Command}, s.Args...), " ")
		if s.URL != "" {
			how = s.URL
		}
		limit := ""
		if seconds := d.Config().MCPTimeoutSeconds; seconds > 0 {
			limit = fmt.Sprintf(", up to %g s (mcpTimeoutSeconds)", seconds)
		}
		fmt.Fprintf(stderr, "Starting the MCP server %s%s; Ctrl-C ends it: %s\n", printable(name), limit, printable(d.Presentable(how)))
	}
	status, err := d.TryMCPServer(ctx, name)
	return status, explainUnknownServer(d, name, err)
}

// explainUnknownServer returns err. For an unknown server, it returns an error that suggests a known one or
// explains how to list them.
func explainUnknownServer(d *daemon.Daemon, name string, err error) error {
	if _, known := d.Config().MCPServers[name]; known {
		return err
	}
	if err == nil {
		err = fmt.Errorf("there is no MCP server %s", printable(name))
	}
	hint := suggest.DidYouMean(name, slices.Sorted(maps.Keys(d.Config().MCPServers)))
	switch {
	case hint != "":
	case len(d.Untrusted()) > 0:
		hint = "; this folder is not trusted, so its own servers have no effect: eca trust shows them and asks"
	default:
		hint = "; `eca mcp list` lists those that are configured"
	}
	return fmt.Errorf("%w%s", err, hint)
}

// withServers calls fn with a daemon for this folder that can start MCP servers, and stops them
// afterwards.
func withServers(sf serverFlags, cmd *cobra.Command, stderr io.Writer, fn func(*daemon.Daemon) error) error {
	d, err := daemonForCwd(withHumanLogLevel(sf, cmd), stderr)
	if err != nil {
		return err
	}
	defer d.Close()
	d.Extensions()
	return requireReadableConfig(fn)(d)
}

// parseServer fills in s from the arguments. It also accepts forms that other programs use: a URL
// instead of a command, and the transport before it. dash is the number of arguments before --, or
// -1 without one.
func parseServer(s *config.MCPServer, transport string, args []string, dash int) error {
	transports := []string{"http", "https", "sse", "stdio", "streamable-http", "streamableHttp"}
	if transport != "" && !slices.Contains(transports, transport) {
		return usage.Choice("transport", transport, "http", "sse", "stdio")
	}
	name, rest := args[0], args[1:]
	verbatim := dash == 1 // -- marks the command
	if !verbatim && len(rest) > 1 && slices.Contains(transports, rest[0]) && s.URL == "" {
		transport, rest = rest[0], rest[1:]
	}
	remote := transport != "" && transport != "stdio"
	switch {
	case dash == 0 || isURL(name) || slices.Contains(transports, name) && len(rest) > 0 && isURL(rest[0]):
		return usage.Errorf("the server needs a name first: eca mcp add NAME -- COMMAND [ARG...], or eca mcp add NAME URL")
	case len(rest) == 0:
	case !verbatim && s.URL == "" && (remote || isURL(rest[0])):
		if len(rest) > 1 {
			return usage.Errorf("unexpected arguments after the URL %s: %s; headers are given with --header NAME=VALUE", rest[0], strings.Join(rest[1:], " "))
		}
		s.URL = rest[0]
	case !verbatim && s.URL == "" && isHostAndPort(rest[0]):
		return usage.Errorf("%s is not a URL: an address must begin with http:// or https://", rest[0])
	case !verbatim && s.URL == "" && hasOtherScheme(rest[0]):
		return usage.Errorf("%s is not an address of a server: it must begin with http:// or https://", rest[0])
	default:
		s.Command, s.Args = rest[0], rest[1:]
	}
	if s.URL != "" {
		if err := config.CheckTransport(s.Command, s.URL); err != nil {
			return usage.New(err)
		}
	}
	if transport == "stdio" && s.URL != "" {
		return usage.Errorf("--transport stdio is for a program: eca mcp add %s -- COMMAND [ARG...]", visible.Argument(name))
	}
	if remote && s.Command != "" {
		return usage.Errorf("--transport %s is for an address: eca mcp add %s URL", transport, visible.Argument(name))
	}
	return nil
}

// isHostAndPort reports whether an argument is HOST:PORT, with or without a path.
func isHostAndPort(word string) bool {
	first, _, _ := strings.Cut(word, "/")
	host, port, err := net.SplitHostPort(first)
	_, numberErr := strconv.ParseUint(port, 10, 16)
	return err == nil && host != "" && numberErr == nil
}

// hasOtherScheme reports whether an argument that is not an http or https URL looks like a URL.
func hasOtherScheme(word string) bool {
	u, err := url.Parse(word)
	const drive = 1 // the length of the drive letter in C:\server.exe
	return err == nil && len(u.Scheme) > drive && strings.Contains(word, ":/")
}

// makeAbsolute replaces relative paths of existing files in the command and its arguments with
// absolute ones, because the server also runs in other folders. It returns a line for each.
func makeAbsolute(s *config.MCPServer) (replaced []string, err error) {
	for i, word := range append([]string{s.Command}, s.Args...) {
		at, err := filepath.Abs(word)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(at)
		isFile := err == nil && info.Mode().IsRegular()
		switch {
		case word == "" || filepath.IsAbs(word) || strings.HasPrefix(word, "~") || strings.HasPrefix(word, "-"):
		case i == 0 && !strings.ContainsAny(word, `/\`): // looked up in PATH
		case i == 0 && !isFile:
			return nil, fmt.Errorf("%s: no such file in this folder%s", printable(word), urlHint(word))
		case isFile:
			if i == 0 {
				s.Command = at
			} else {
				s.Args[i-1] = at
			}
			replaced = append(replaced, fmt.Sprintf("It is stored as %s instead of %s, since it also runs in other folders.", printable(at), printable(word)))
		}
	}
	return replaced, nil
}

// urlHint returns a hint to add to the error about a missing program if the word looks like a URL or
// HOST:PORT; otherwise an empty text.
func urlHint(word string) string {
	host, _, _ := strings.Cut(word, "/")
	if strings.ContainsAny(host, ".:") && !strings.HasPrefix(host, ".") && filepath.Ext(host) != ".exe" {
		return "; if it is an address, begin it with https:// or http://"
	}
	return ""
}

// isURL reports whether an argument is a URL.
func isURL(arg string) bool {
	return strings.HasPrefix(arg, "http://") || strings.HasPrefix(arg, "https://")
}

// startProblem returns why the program of a server cannot be started now, or "" if no reason is known.
func startProblem(s config.MCPServer) string {
	if s.Command == "" || strings.ContainsAny(s.Command, "$~") {
		return ""
	}
	info, err := os.Stat(s.Command)
	switch byName := !strings.ContainsAny(s.Command, `/\`); {
	case strings.Contains(s.Command, " ") && errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no program %q: if it has arguments, move them from command to args", s.Command)
	case byName && !proc.Installed(s.Command):
		return fmt.Sprintf("there is no program %s in PATH: install it, or name it by its path%s", s.Command, urlHint(s.Command))
	case byName:
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %s yet: the server can start once it exists", s.Command)
	case err == nil && info.IsDir():
		return s.Command + " is a directory, not a program"
	case err == nil && runtime.GOOS != "windows" && info.Mode()&0o111 == 0:
		return fmt.Sprintf("%s is not executable: run chmod +x %s", s.Command, s.Command)
	}
	if script := missingScript(s); script != "" {
		return fmt.Sprintf("there is no file %s yet: the server can start once it exists", script)
	}
	return ""
}

// missingScript returns the script that the command of a server is to interpret, if it does not exist.
func missingScript(s config.MCPServer) string {
	interpreter := regexp.MustCompile(`^(python[0-9.]*|node|ruby|perl|php|sh|bash|zsh)(\.exe)?$`)
	if !interpreter.MatchString(filepath.Base(s.Command)) || len(s.Args) == 0 {
		return ""
	}
	script := s.Args[0]
	if filepath.Ext(script) == "" && !strings.ContainsAny(script, `/\`) || strings.HasPrefix(script, "-") || strings.ContainsAny(script, "$~") {
		return ""
	}
	if _, err := os.Stat(script); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return script
}

// checkServerFlags rejects a server without a command or URL, and flags of the other kind of server.
func checkServerFlags(s config.MCPServer) error {
	switch {
	case s.Command == "" && s.URL == "":
		return usage.Errorf("say what the server is: eca mcp add NAME -- COMMAND [ARG...], or eca mcp add NAME URL")
	case s.URL != "" && len(s.Env) > 0:
		return usage.Errorf("--env is for programs, not for an address")
	case s.Command != "" && len(s.Headers) > 0:
		return usage.Errorf("--header is for an address, not for a program")
	}
	return nil
}

func listServers(d *daemon.Daemon, stdout io.Writer) error {
	servers := d.Config().MCPServers
	if len(servers) == 0 {
		if _, err := fmt.Fprintln(stdout, "No MCP servers are configured."); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := servers[name]
		how, state := strings.Join(append([]string{s.Command}, s.Args...), " "), "enabled"
		if s.URL != "" {
			how = s.URL
		}
		if s.Disabled {
			state = "disabled"
		}
		origin, _ := d.Config().Origin("mcpServers", name)
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", printable(name), state, printable(d.Presentable(how)), origin.Source)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if units := d.Untrusted(); len(units) > 0 {
		why := "Files of this folder are not trusted"
		if changed := d.ChangedSinceTrust(units...); changed != "" {
			why = "You trusted this folder before; since then: " + printable(changed)
		}
		_, err := fmt.Fprintln(stdout, why+". Its own servers have no effect: eca trust shows them and asks.")
		return err
	}
	return nil
}

// showServer prints the result of starting a server.
func showServer(s mcp.Status, clean func(string) string, stdout io.Writer) error {
	show := func(text string) string { return printable(clean(text)) }
	if s.State != mcp.Running {
		fmt.Fprintf(stdout, "%s: %s", show(s.Name), s.State)
		if s.Reason != "" {
			fmt.Fprintf(stdout, ": %s", show(s.Reason))
		}
		fmt.Fprintln(stdout)
		return exitError{1}
	}
	fmt.Fprintf(stdout, "%s: %s, %s, protocol %s\n", show(s.Name), s.State, show(s.Offer.Server), s.Offer.Protocol)
	section := func(title string, n int, line func(i int) (name, about string)) {
		if n == 0 {
			return
		}
		fmt.Fprintf(stdout, "%s:\n", title)
		for i := range n {
			name, about := line(i)
			fmt.Fprintf(stdout, "  %s  %s\n", show(name), short(show(about)))
		}
	}
	section("tools", len(s.Offer.Tools), func(i int) (string, string) {
		t := s.Offer.Tools[i].Described()
		if _, changed := s.Offer.Tools[i].Changed(); changed {
			return t.Name + " (changed since you agreed to it)", t.Description
		}
		return t.Name, t.Description
	})
	section("left out", len(s.Offer.LeftOut), func(i int) (string, string) { return s.Offer.LeftOut[i], "" })
	section("prompts", len(s.Offer.Prompts), func(i int) (string, string) {
		return "/" + s.Name + ":" + s.Offer.Prompts[i].Name, s.Offer.Prompts[i].Description
	})
	section("resources", len(s.Offer.Resources), func(i int) (string, string) {
		return s.Offer.Resources[i].URI, s.Offer.Resources[i].Name
	})
	return nil
}

// allowServer approves a server. It has to start the server to know its tools.
func allowServer(ctx context.Context, d *daemon.Daemon, name string, stdout, stderr io.Writer) error {
	status, err := tryServer(ctx, d, name, stderr)
	if err != nil {
		return err
	}
	if status.State != mcp.Running {
		d.AllowMCPServer(name)
		if status, err = tryServer(ctx, d, name, io.Discard); err != nil { // the start was announced above
			return err
		}
	}
	d.AllowMCPServer(name)
	if err := showServer(status, d.Presentable, stdout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "Approved the current command and tools of %s.\n", printable(name))
	return err
}

// short truncates text to 100 characters.
func short(text string) string {
	const limit = 100
	if r := []rune(text); len(r) > limit {
		return string(r[:limit]) + "…"
	}
	return text
}
