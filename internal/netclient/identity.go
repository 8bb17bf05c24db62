package netclient

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Files are the certificate files. Key is PEM: PKCS 8, encrypted or not, PKCS 1 or SEC 1.
type Files struct {
	CA         []Source // trusted in addition to the system's authorities; PEM or DER
	Cert       Source   // the client certificate with its intermediate certificates; PEM
	Key        Source   // its private key
	Passphrase string   // of the key; empty if it has none
}

// Source is a file with its origin.
type Source struct {
	Name string // the configuration key or environment variable that names the file, for messages
	Path string // empty if there is no file
}

// Problem is why a part of Files is not used.
type Problem struct {
	Source Source
	Cause  string
}

// Certificate describes a certificate.
type Certificate struct {
	Source  Source
	Subject string
	Until   time.Time
}

// Identity is the content of Files. It is immutable; the zero Identity trusts the system's
// authorities and has no client certificate.
type Identity struct {
	roots      []authority
	clientInfo *Certificate                     // nil if there is no client certificate
	loadClient func() (*tls.Certificate, error) // likewise
	files      Files
	digest     [sha256.Size]byte // of the files' contents and errors; zero if Files names no file
}

// authority is one file of trusted certificates.
type authority struct {
	source Source
	certs  func() ([]*x509.Certificate, error)
}

// maxParsedAtOnce is the size, in bytes, up to which Read parses a file of authorities. Larger files,
// such as copies of the system's bundle, are parsed for the first connection.
const maxParsedAtOnce = 64 << 10

// maxFile is the largest file of certificates, in bytes; the system's bundles are below 1 MiB.
const maxFile = 8 << 20

// Read reads the files. A file with an error is skipped and reported in problems. An encrypted key
// is decrypted only when it is first needed, since that is slow by design; Check does it
// immediately.
func Read(files Files) (*Identity, []Problem) {
	id := &Identity{files: files}
	var problems []Problem
	sum := sha256.New()
	failed := func(s Source, err error) {
		problems = append(problems, Problem{s, err.Error()})
		fmt.Fprintf(sum, "%q: %v\n", s.Path, err)
	}
	hasFiles := false
	seen := map[string]bool{"": true}
	for _, s := range files.CA {
		if seen[s.Path] {
			continue
		}
		hasFiles, seen[s.Path] = true, true
		data, err := readFile(s.Path)
		certs := sync.OnceValues(func() ([]*x509.Certificate, error) { return parseCertificates(data) })
		if err == nil && len(data) <= maxParsedAtOnce {
			_, err = certs()
		}
		if err != nil {
			failed(s, err)
			continue
		}
		id.roots = append(id.roots, authority{s, certs})
		fmt.Fprintf(sum, "ca %d\n", len(data))
		sum.Write(data)
	}
	if files.Cert.Path != "" || files.Key.Path != "" {
		hasFiles = true
		if at, err := id.readClient(sum); err != nil {
			failed(at, err)
		}
	}
	if hasFiles {
		sum.Sum(id.digest[:0])
	}
	return id, problems
}

// readClient reads the client certificate. at is the file that caused the error.
func (id *Identity) readClient(sum io.Writer) (at Source, err error) {
	cert, key := id.files.Cert, id.files.Key
	switch {
	case cert.Path == "":
		return key, fmt.Errorf("a client key without %s has no effect", cert.Name)
	case key.Path == "":
		return cert, fmt.Errorf("a client certificate without %s has no effect", key.Name)
	}
	certPEM, err := readFile(cert.Path)
	if err != nil {
		return cert, err
	}
	chain, err := parseCertificates(certPEM)
	if err != nil {
		return cert, err
	}
	keyPEM, err := readFile(key.Path)
	if err != nil {
		return key, err
	}
	fmt.Fprintf(sum, "client %d %d %q\n", len(certPEM), len(keyPEM), id.files.Passphrase)
	_, _ = sum.Write(certPEM)
	_, _ = sum.Write(keyPEM)
	encrypted, err := inspectKey(keyPEM)
	if err == nil && encrypted && id.files.Passphrase == "" {
		err = errors.New("the key is encrypted: set network.clientKeyPassphrase")
	}
	if err != nil {
		return key, err
	}
	load := sync.OnceValues(func() (*tls.Certificate, error) { return newKeyPair(certPEM, keyPEM, id.files.Passphrase) })
	if !encrypted {
		if _, err := load(); err != nil {
			return key, err
		}
	}
	id.loadClient = load
	id.clientInfo = &Certificate{cert, chain[0].Subject.String(), chain[0].NotAfter}
	return Source{}, nil
}

// newKeyPair decrypts the key and combines it with the certificate.
func newKeyPair(certPEM, keyPEM []byte, passphrase string) (*tls.Certificate, error) {
	plain, err := decryptKey(keyPEM, passphrase)
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(certPEM, plain)
	if err != nil {
		return nil, fmt.Errorf("certificate and key cannot be used together: %w", err)
	}
	return &c, nil
}

// Check performs the checks that Read postponed. It may take a second.
func (id *Identity) Check() []Problem {
	var out []Problem
	for _, r := range id.roots {
		if _, err := r.certs(); err != nil {
			out = append(out, Problem{r.source, err.Error()})
		}
	}
	if id.loadClient != nil {
		if _, err := id.loadClient(); err != nil {
			out = append(out, Problem{id.files.Key, err.Error()})
		}
	}
	return out
}

// Authorities lists the certificates that are trusted in addition to the system's.
func (id *Identity) Authorities() []Certificate {
	var out []Certificate
	for _, r := range id.roots {
		certs, _ := r.certs() // errors are reported by Check
		for _, c := range certs {
			out = append(out, Certificate{r.source, c.Subject.String(), c.NotAfter})
		}
	}
	return out
}

// Client describes the client certificate; ok is false if there is no such certificate.
func (id *Identity) Client() (c Certificate, ok bool) {
	if id.clientInfo == nil {
		return Certificate{}, false
	}
	return *id.clientInfo, true
}

// Paths lists the files that were read or are missing.
func (id *Identity) Paths() []string {
	var out []string
	for _, s := range append(append([]Source{}, id.files.CA...), id.files.Cert, id.files.Key) {
		if s.Path != "" && !slices.Contains(out, s.Path) {
			out = append(out, s.Path)
		}
	}
	return out
}

// config returns the TLS configuration. It reads the system's authorities if necessary.
func (id *Identity) config() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetClientCertificate: id.clientCertificate}
	if len(id.roots) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil { // for example, in a container without certificates
			pool = x509.NewCertPool()
		}
		for _, r := range id.roots {
			certs, _ := r.certs() // errors are reported by Check
			for _, c := range certs {
				pool.AddCert(c)
			}
		}
		c.RootCAs = pool
	}
	return c
}

// clientCertificate answers a server's request for a client certificate. Without one, the
// answer is empty, which many servers accept.
func (id *Identity) clientCertificate(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if id.loadClient == nil {
		if r := routeOf(info.Context()); r != nil {
			r.certificateRequested.Store(true)
		}
		return &tls.Certificate{}, nil
	}
	c, err := id.loadClient()
	if err != nil {
		return nil, &Error{Kind: KindClientCertificate, Message: "our client certificate cannot be used: " + id.files.Key.Name + ": " + err.Error()}
	}
	return c, nil
}

func readFile(path string) ([]byte, error) {
	data, err := safeio.Read(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, safeio.Cause(err))
	}
	return data, nil
}

// parseCertificates returns the certificates in a file's content, PEM or DER.
func parseCertificates(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	rest := data
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of the file cannot be read: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if len(out) > 0 {
		return out, nil
	}
	if bytes.HasPrefix(data, []byte{0x30}) { // DER
		if out, err := x509.ParseCertificates(data); err == nil && len(out) > 0 {
			return out, nil
		}
	}
	return nil, errors.New("the file contains no certificate")
}
