package netclient

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// clientFiles are the files of a client certificate and its key.
func clientFiles(a *testkit.Authority, key []byte, passphrase string, cert []byte) Files {
	own := a.Elsewhere()
	return Files{
		Cert: Source{"network.clientCert", own.Write("c.pem", cert)}, Key: Source{"network.clientKey", own.Write("c.key", key)}, Passphrase: passphrase,
	}
}

func problemTexts(files Files) string {
	id, problems := Read(files)
	problems = append(problems, id.Check()...)
	var out []string
	for _, p := range problems {
		out = append(out, p.Source.Name+": "+p.Cause)
	}
	return strings.Join(out, "\n")
}

// Read accepts every form of a key that OpenSSL writes. An encrypted key requires its passphrase.
func TestKeys(t *testing.T) {
	openssl := needs.Program(t, "openssl", "openssl")
	a := testkit.NewAuthority(t, "Our CA")
	me := a.Issue(testkit.Tomorrow())
	plain := a.Write("plain.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, me.PrivateKey)))
	for name, args := range map[string]string{
		"default":        "pkcs8 -topk8 -in IN -passout pass:open-sesame",
		"AES-128, SHA-1": "pkcs8 -topk8 -in IN -v2 aes-128-cbc -v2prf hmacWithSHA1 -passout pass:open-sesame",
		"AES-192":        "pkcs8 -topk8 -in IN -v2 aes-192-cbc -v2prf hmacWithSHA384 -passout pass:open-sesame",
		"AES-256":        "pkcs8 -topk8 -in IN -v2 aes-256-cbc -v2prf hmacWithSHA512 -passout pass:open-sesame",
		"triple DES":     "pkcs8 -topk8 -in IN -v2 des3 -passout pass:open-sesame",
		"PEM":            "ec -in IN -aes256 -passout pass:open-sesame",
		"SEC 1":          "ec -in IN",
	} {
		out := filepath.Join(t.TempDir(), "out.key")
		words := append(strings.Fields(strings.Replace(args, "IN", plain, 1)), "-out", out)
		if said, err := exec.Command(openssl, words...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, said)
		}
		key, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if got := problemTexts(clientFiles(a, key, "open-sesame", testkit.CertPEM(me))); got != "" {
			t.Errorf("%s: %s", name, got)
		}
		if !strings.Contains(string(key), "ENCRYPTED") {
			continue
		}
		if got := problemTexts(clientFiles(a, key, "open-sesamE", testkit.CertPEM(me))); got != "network.clientKey: wrong passphrase for the key" {
			t.Errorf("%s, wrong passphrase: %s", name, got)
		}
		if got := problemTexts(clientFiles(a, key, "", testkit.CertPEM(me))); got != "network.clientKey: the key is encrypted: set network.clientKeyPassphrase" {
			t.Errorf("%s, no passphrase: %s", name, got)
		}
	}
	out := filepath.Join(t.TempDir(), "out.key")
	if _, err := exec.Command(openssl, "pkcs8", "-topk8", "-in", plain, "-scrypt", "-passout", "pass:x", "-out", out).CombinedOutput(); err == nil {
		key, _ := os.ReadFile(out)
		if got := problemTexts(clientFiles(a, key, "x", testkit.CertPEM(me))); !strings.Contains(got, "scrypt are not supported; convert it: openssl pkcs8") {
			t.Errorf("scrypt: %s", got)
		}
	}
}

func TestFiles(t *testing.T) {
	a := testkit.NewAuthority(t, "Our CA")
	me, other := a.Issue(testkit.Tomorrow()), a.Issue(testkit.Tomorrow())
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, cert := testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, me.PrivateKey)), testkit.CertPEM(me)
	damaged := a.Write("damaged.pem", testkit.PEM("CERTIFICATE", a.Cert.Raw[:100]))
	ca := func(path string) Files { return Files{CA: []Source{{"network.caCertFile", path}}} }
	sec1, err := x509.MarshalECPrivateKey(me.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files Files
		want  string
	}{
		"nothing":           {Files{}, ""},
		"CA":                {ca(a.File()), ""},
		"CA in DER":         {ca(a.Write("ca.der", a.Cert.Raw)), ""},
		"CA with comments":  {ca(a.Write("many.pem", append([]byte("# Our CA\n"), append(testkit.PEM("CERTIFICATE", a.Cert.Raw), cert...)...))), ""},
		"no such CA":        {ca("/nowhere/ca.pem"), "network.caCertFile: /nowhere/ca.pem cannot be read: "},
		"a folder":          {ca(filepath.Dir(a.File())), "it is not a regular file"},
		"an empty CA":       {ca(a.Write("empty.pem", nil)), "network.caCertFile: the file contains no certificate"},
		"a key as CA":       {ca(a.Write("key.pem", key)), "network.caCertFile: the file contains no certificate"},
		"a damaged CA":      {ca(damaged), "network.caCertFile: certificate 1 of the file cannot be read"},
		"client":            {clientFiles(a, key, "", cert), ""},
		"SEC 1":             {clientFiles(a, testkit.PEM("EC PRIVATE KEY", sec1), "", cert), ""},
		"useless phrase":    {clientFiles(a, key, "not needed", cert), ""},
		"another's key":     {clientFiles(a, testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, other.PrivateKey)), "", cert), "network.clientKey: certificate and key cannot be used together"},
		"an RSA key":        {clientFiles(a, testkit.PEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), "", cert), "network.clientKey: certificate and key cannot be used together"},
		"no key":            {Files{Cert: Source{"network.clientCert", damaged}, Key: Source{Name: "network.clientKey"}}, "network.clientCert: a client certificate without network.clientKey has no effect"},
		"no certificate":    {Files{Cert: Source{Name: "network.clientCert"}, Key: Source{"network.clientKey", damaged}}, "network.clientKey: a client key without network.clientCert has no effect"},
		"certificate twice": {Files{Cert: Source{"network.clientCert", a.File()}, Key: Source{"network.clientKey", a.File()}}, "network.clientKey: the file contains no private key in PEM"},
	} {
		got := problemTexts(c.files)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	// A bundle is read later, and its errors are reported too.
	bundle := ca(a.Write("bundle.pem", append([]byte(strings.Repeat("# one of many\n", 6000)), testkit.PEM("CERTIFICATE", a.Cert.Raw[:100])...)))
	if id, problems := Read(bundle); len(problems) > 0 || len(id.Check()) != 1 || len(id.Authorities()) != 0 {
		t.Errorf("a damaged bundle: %v", problems)
	}
	id, _ := Read(ca(a.File()))
	if about := id.Authorities(); len(about) != 1 || about[0].Subject != "CN=Our CA" || !about[0].Until.Equal(a.Cert.NotAfter) {
		t.Errorf("%+v", about)
	}
}

// Read does not wait for the decryption of a key. Check reports the error of a key that cannot be
// decrypted.
func TestKeyIsDecryptedLater(t *testing.T) {
	a := testkit.NewAuthority(t, "Our CA")
	me := a.Issue(testkit.Tomorrow())
	id, problems := Read(clientFiles(a, testkit.PEM("ENCRYPTED PRIVATE KEY", []byte{0x30, 0}), "x", testkit.CertPEM(me)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := id.Check(); len(got) != 1 || got[0].Cause != "the key is damaged" {
		t.Errorf("%v", got)
	}
}

// For any bytes, decryptPKCS8 returns a valid key or an error.
func FuzzKey(f *testing.F) {
	f.Add([]byte{0x30, 0})
	f.Add([]byte("0\x500\x20\x06\x09*\x86H\x86\xf7\x0d\x01\x05\x0d0\x130\x09\x06\x07*\x86H\x86\xf7\x0d\x010\x06\x06\x02*\x03\x05\x00\x04\x10aaaaaaaaaaaaaaaa"))
	f.Fuzz(func(t *testing.T, der []byte) {
		plain, err := decryptPKCS8(der, []byte("x"))
		if err != nil {
			return
		}
		if _, err := x509.ParsePKCS8PrivateKey(plain); err != nil {
			t.Errorf("decryptPKCS8 returned an invalid key: %v", err)
		}
	})
}
