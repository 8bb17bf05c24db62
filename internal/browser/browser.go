// Package browser opens addresses in the user's browser, where there is one. It owns how
// that is done on each system; it does not decide whether an address is safe to open.
package browser

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// patience is how long a program may take to say that it cannot open an address. One that
// goes on is the browser itself.
const patience = 3 * time.Second

// Open has the user's browser open an http or https address. The browser outlives eca. An
// error means that none was found, or that it could not be started.
func Open(ctx context.Context, address string, getenv func(string) string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return errors.New("browsers are given http and https addresses only")
	}
	program, args, err := command(getenv)
	if err != nil {
		return err
	}
	// The program that opens addresses starts the browser and ends; a supervisor would end that too.
	p, err := proc.Start(proc.Spec{Path: program, Args: append(args, u.String()), Leaves: true})
	if err != nil {
		return err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-p.Done():
		if exit := p.Wait(); exit.Code != 0 {
			return fmt.Errorf("%s ended with code %d", program, exit.Code)
		}
	case <-late.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
