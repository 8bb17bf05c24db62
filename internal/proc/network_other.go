//go:build !linux

package proc

import (
	"errors"
	"net"
)

// Network is a network namespace, which only Linux has.
type Network struct{}

// NewNetwork fails: there are no network namespaces.
func (p *Pool) NewNetwork(...int) (*Network, error) {
	return nil, errors.ErrUnsupported
}

// Listeners returns none.
func (n *Network) Listeners() []net.Listener { return nil }

// Close does nothing.
func (n *Network) Close() {}
