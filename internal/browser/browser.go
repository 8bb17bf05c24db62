// Package browser opens URLs in the user's browser, if there is one, with the usual program of
// each operating system. It does not decide whether a URL is safe to open.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// patience is how long the opening program may take to fail. If it still runs after that, it is the
// browser itself.
const patience = 3 * time.Second

// Open opens an http or https URL in the user's browser, which outlives eca. The error means that
// no browser was found, or that it could not be started.
func Open(ctx context.Context, address string, getenv func(string) string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("only http and https addresses are opened in a browser")
	}
	program, args, err := command(getenv)
	if err != nil {
		return err
	}
	// The opening program starts the browser and exits; a supervisor would kill the browser then.
	p, err := proc.Start(proc.Spec{Path: program, Args: append(args, u.String()), Leaves: true})
	if err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.Done():
		if exit := p.Wait(); exit.Code != 0 {
			return fmt.Errorf("%s exited with code %d", program, exit.Code)
		}
	case <-late.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
