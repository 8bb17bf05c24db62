//go:build !linux

package proc

import (
	"errors"
	"net"
)

// Network is a network namespace. Only Linux has them.
type Network struct{}

// NewNetwork returns an error: this system has no network namespaces.
func (p *Pool) NewNetwork(...int) (*Network, error) {
	return nil, errors.ErrUnsupported
}

// Listeners returns nil.
func (n *Network) Listeners() []net.Listener { return nil }

// Close does nothing.
func (n *Network) Close() {}
