package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	"rsc.io/qr"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/editors/web"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/remote"
	"github.com/seed-dec29ce4/eca/server"
)

// attachRemote lets d run the remote server if its configuration enables it.
func attachRemote(d *daemon.Daemon, f serverFlags, log *slog.Logger) {
	join := func(ctx context.Context, r io.Reader, w io.Writer, follow func() time.Duration) error {
		return server.Serve(ctx, r, w, server.Options{Host: d, Version: version, Log: log, Shared: true, Follow: follow})
	}
	d.AttachRemote(remote.New(remote.Options{
		Engine: d.Engine(), Models: d, Config: d.Config, Watch: d.Watch, Roots: d.Roots, Serve: join,
		Page: func(ctx context.Context, g remote.Gate) http.Handler {
			folder := ""
			if roots := d.Roots(); len(roots) > 0 {
				folder = roots[0]
			}
			pages, _ := web.New(ctx, web.Options{
				Serve:  func(ctx context.Context, r io.Reader, w io.Writer) error { return join(ctx, r, w, nil) },
				Folder: folder, Version: version, Log: log, Gate: g,
			})
			return pages
		},
		Limit:    func(l net.Listener) net.Listener { return netutil.LimitListener(l, maxConnections) },
		Push:     d.PushServices(),
		StateDir: stateDir(f), Version: version, Log: log,
	}))
}

func stateDir(f serverFlags) string {
	if f.stateDir != "" {
		return f.stateDir
	}
	return settings.StateDir(os.Getenv)
}

const remoteHelp = `Pairs devices with the remote server, lists them and takes their access away.

The remote server runs with the editor if remote.enabled is set. Without a certificate, only this
machine can connect. See docs/remote.md.`

func remoteCommand(f *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remote", Short: "Pair devices with the remote server", Long: remoteHelp, Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return usage.Errorf("a command is missing; eca remote --help lists them")
		},
	}
	cmd.AddCommand(pairCommand(f, stdout, stderr), devicesCommand(f, stdout), revokeCommand(f, stdout))
	return cmd
}

// pairedDevices opens the file of the paired devices.
func pairedDevices(f *serverFlags) (*remote.Devices, error) {
	if f.stateDir == "" {
		if err := checkState(os.Getenv); err != nil {
			return nil, err
		}
	}
	return remote.OpenDevices(stateDir(*f), time.Now), nil
}

func pairCommand(f *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var name, rights string
	cmd := &cobra.Command{
		Use: "pair", Short: "Make a token for a device", Args: cobra.NoArgs,
		Long: `Makes a token for a device, and shows it once, as a link and as a QR code.

A device must use the token within ten minutes; from then on, the token belongs to this device until
you revoke it.`,
		RunE: func(*cobra.Command, []string) error {
			var r remote.Rights
			if err := usage.Choice("rights", rights, remote.Watch.String(), remote.Control.String(), remote.Trust.String()); err != nil {
				return err
			}
			if err := r.UnmarshalText([]byte(rights)); err != nil {
				return err
			}
			const longest = 100 // characters
			switch {
			case utf8.RuneCountInString(name) > longest:
				return usage.Errorf("--name must have at most %d characters", longest)
			case strings.ContainsAny(name, "\n\t") || visible.Text(name) != name:
				return usage.Errorf("--name must be text on one line, without control characters, not %q", name)
			}
			devices, err := pairedDevices(f)
			if err != nil {
				return err
			}
			token, dev, err := devices.Pair(name, r)
			if err != nil {
				return fmt.Errorf("cannot pair a device: %w", err)
			}
			fmt.Fprintf(stdout, "Device %s (%s, %s)\nToken: %s\n\nUse it within ten minutes. It is not shown again.\n", dev.ID, dev.Name, dev.Rights, token)
			return showLinks(devices, token, stdout, stderr)
		},
	}
	cmd.Flags().StringVar(&name, "name", "device", "how the device is listed, in at most 100 characters")
	cmd.Flags().StringVar(&rights, "rights", remote.Control.String(), "what the device may do: watch, control or trust")
	return cmd
}

// showLinks prints a link with the token, also as a QR code, for each remote server that runs now.
func showLinks(devices *remote.Devices, token string, stdout, stderr io.Writer) error {
	list, err := devices.Endpoints()
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(e remote.Endpoint) bool { return e.PID == 0 || !answers(e.Port) })
	if len(list) == 0 {
		fmt.Fprintln(stderr, "eca remote: no remote server runs now; it starts with the editor if remote.enabled is set")
		return nil
	}
	for _, e := range list {
		link := e.URL + "/#token=" + token
		fmt.Fprintf(stdout, "\n%s\n%s\n", strings.Join(e.Roots, ", "), link)
		code, err := qr.Encode(link, qr.L)
		if err != nil {
			return fmt.Errorf("cannot draw a QR code: %w", err)
		}
		fmt.Fprintln(usage.Raw(stdout), drawCode(code))
	}
	fmt.Fprintln(stdout, "\nFor https://web.eca.dev enter the host and the token by hand: a link would show the token to that server.")
	return nil
}

// answers reports whether a server listens at a port of this machine.
func answers(port int) bool {
	const patience = time.Second
	conn, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), patience)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// drawCode draws a QR code with two rows of modules per line of text. It sets both colours, so the
// code is readable on any terminal.
func drawCode(code *qr.Code) string {
	const quiet = 2 // width of the quiet zone, in modules
	var b strings.Builder
	for y := -quiet; y < code.Size+quiet; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := -quiet; x < code.Size+quiet; x++ {
			b.WriteString([]string{" ", "▄", "▀", "█"}[bit(code.Black(x, y))*2+bit(code.Black(x, y+1))])
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}

func bit(on bool) int {
	if on {
		return 1
	}
	return 0
}

func devicesCommand(f *serverFlags, stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "devices", Short: "List the paired devices", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			devices, err := pairedDevices(f)
			if err != nil {
				return err
			}
			list, err := devices.List()
			if err != nil {
				return fmt.Errorf("cannot list the devices: %w", err)
			}
			if len(list) == 0 {
				fmt.Fprintln(stdout, "no devices")
				return nil
			}
			table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tNAME\tRIGHTS\tLAST USE")
			for _, dev := range list {
				used := "not used yet"
				if !dev.Used.IsZero() {
					used = dev.Used.Local().Format(time.DateTime)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", dev.ID, printable(dev.Name), dev.Rights, used)
			}
			return table.Flush()
		},
	}
}

func revokeCommand(f *serverFlags, stdout io.Writer) *cobra.Command {
	all := false
	cmd := &cobra.Command{
		Use: "revoke [ID]", Short: "Take a device's access away", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if all == (len(args) == 1) {
				return usage.Errorf("give the ID of a device, or --all")
			}
			devices, err := pairedDevices(f)
			if err != nil {
				return err
			}
			id := strings.Join(args, "")
			n, err := devices.Revoke(id)
			if err != nil {
				return fmt.Errorf("cannot revoke: %w", err)
			}
			if n == 0 && !all {
				return fmt.Errorf("there is no device %s; `eca remote devices` lists them", id)
			}
			fmt.Fprintf(stdout, "revoked %d\n", n)
			return nil
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "revoke all devices")
	return cmd
}
