package netclient

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// Guard returns an error if a connection must not be made. It is called with the resolved address
// right before each connection, so that the name cannot resolve to another address in between. It
// is not called for connections to a proxy.
type Guard func(netip.AddrPort) error

type guardKey struct{}

// WithGuard returns a context for requests of a client whose Options are Guarded.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// guarded is a net.Dialer.ControlContext.
func guarded(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if j := routeOf(ctx); j != nil && j.proxy != nil {
		return nil
	}
	guard, _ := ctx.Value(guardKey{}).(Guard)
	at, err := netip.ParseAddrPort(address)
	switch {
	case guard == nil:
		err = fmt.Errorf("connections to %s have no guard", address)
	case err == nil:
		err = guard(at)
	}
	if err != nil {
		return &Error{Kind: KindForbidden, Message: err.Error(), Cause: err}
	}
	return nil
}
