package netclient

import "io"

// ending returns a body that calls end when it is closed. If a connection was taken over, the body
// can still be written to.
func ending(body io.ReadCloser, end func()) io.ReadCloser {
	if w, ok := body.(io.Writer); ok {
		return &duplex{ended{body, end}, w}
	}
	return &ended{body, end}
}

type ended struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (e *ended) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

type duplex struct {
	ended
	io.Writer
}
