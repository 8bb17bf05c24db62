package doctor

import (
	"path/filepath"
	"slices"
	"testing"
)

func TestInstalledBy(t *testing.T) {
	for _, test := range []struct{ path, also, want string }{
		{"/opt/homebrew/Cellar/eca/1.0.0/bin/eca", "", "by Homebrew"},
		{"/home/u/p/node_modules/@seed-dec29ce4/eca-linux-x64/bin/eca", "", "by npm"},
		{"/nix/store/abc-eca-1.0.0/bin/eca", "", "by Nix"},
		{"/home/u/go/bin/eca", "", "by go install"},
		{"/home/u/venv/bin/eca", "/home/u/venv/pyvenv.cfg", "by pip, pipx or uv"},
		{"/usr/bin/eca", "/var/lib/dpkg/info/eca.list", "by the Debian package eca"},
		{"/usr/bin/eca", "", "by a package of the system"},
		{"/home/u/.local/bin/eca", "", "copied or built by hand"},
	} {
		present := []string{filepath.FromSlash(test.also), test.also}
		exists := func(name string) bool { return name != "" && slices.Contains(present, name) }
		if got := installedBy(filepath.FromSlash(test.path), exists); got != test.want {
			t.Errorf("%s: %q, want %q", test.path, got, test.want)
		}
	}
}
