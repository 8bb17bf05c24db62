package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/editors/web"
	"github.com/seed-dec29ce4/eca/internal/browser"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/server"
)

const webHelp = `Opens the chat page for this directory in the browser, for chats without an editor.

Only this machine can open the page, and only with the link. A link works once; after its use, eca
prints the next one. Chats continue while no page is open, and end with this command (Ctrl-C). See
docs/web.md.`

type webFlags struct {
	port   int
	noOpen bool
}

func webCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var f webFlags
	cmd := &cobra.Command{
		Use:   "web",
		Short: "Open the chat page in the browser",
		Long:  webHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveWeb(cmd.Context(), withHumanLogLevel(*sf, cmd), f, stdout, stderr)
		},
	}
	cmd.Flags().IntVar(&f.port, "port", 0, "port to serve at; 0 is any that is free")
	cmd.Flags().BoolVar(&f.noOpen, "no-open", false, "print the link, and open no browser")
	return cmd
}

// serveWeb serves the page until ctx ends.
func serveWeb(ctx context.Context, sf serverFlags, f webFlags, stdout, stderr io.Writer) error {
	const maxPort = 65535
	if f.port < 0 || f.port > maxPort {
		return usage.Errorf("--port must be between 0 and %d, not %d", maxPort, f.port)
	}
	log, err := logger(sf.logLevel, stderr)
	if err != nil {
		return err
	}
	cwd, err := workingDir()
	if err != nil {
		return fmt.Errorf("the workspace is unknown: %w", err)
	}
	listener, err := listen("--port", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return err
	}
	defer listener.Close()
	d, err := newDaemon(sf, log)
	if err != nil {
		return err
	}
	defer d.Close()
	opts := server.Options{Host: d, Version: version, Log: log.Logger}
	if sf.verbose {
		opts.Trace = log.trace()
	}
	address := listener.Addr().String()
	link := func(token string) string { return "http://" + address + "/#token=" + token }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	pages, token := web.New(ctx, web.Options{
		Serve:  func(ctx context.Context, r io.Reader, w io.Writer) error { return server.Serve(ctx, r, w, opts) },
		Folder: cwd, Version: version, Log: log.Logger,
		NewLink: func(token string) { fmt.Fprintf(stdout, "For another browser: %s\n", link(token)) },
	})
	defer pages.Close()
	fmt.Fprintf(stdout, "eca web: %s\n", link(token))
	if !f.noOpen {
		if err := browser.Open(ctx, link(token), os.Getenv); err != nil && ctx.Err() == nil {
			fmt.Fprintf(stderr, "eca web: no browser was opened (%v); open the link above\n", err)
		}
	}
	go func() {
		<-pages.Ended()
		cancel()
	}()
	guard := httpguard.New(httpguard.Options{Address: address}, httpguard.Pages{Own: true})
	return serveUntil(ctx, listener, guarded(guard, pages), pages.Close)
}

// guarded lets guard refuse or answer requests before next serves them.
func guarded(guard *httpguard.Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done, refused := guard.Admit(w, r)
		switch {
		case refused != nil:
			refused.Write(w)
		case !done:
			next.ServeHTTP(w, r)
		}
	})
}
