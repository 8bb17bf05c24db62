package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Unpacked files equal the packed ones, and equal contents have equal digests.
func TestBundle(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"manifest.yaml": "m", "repo/a.txt": "a", "repo/bin/run": "#!", "other.txt": "not referred to"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "repo/bin/run"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a.txt", filepath.Join(dir, "repo/link")); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	sum, err := pack(dir, []string{"manifest.yaml", "repo"}, &first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pack(dir, []string{"manifest.yaml", "repo"}, &second); err != nil || again != sum || sum != jet.Digest(first.Bytes()) {
		t.Errorf("%s, then %s, %v", sum, again, err)
	}
	out := t.TempDir()
	if err := unpack(&first, out); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(out, "repo/link")); err != nil || string(data) != "a" {
		t.Errorf("%q, %v", data, err)
	}
	if info, err := os.Stat(filepath.Join(out, "repo/bin/run")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("the program is %v, %v", info, err)
	}
	if fileExists(filepath.Join(out, "other.txt")) {
		t.Error("what the manifest does not refer to was packed")
	}
}

// A malicious archive writes nothing outside its folder.
func TestHostileBundle(t *testing.T) {
	for name, headers := range map[string][]tar.Header{
		"a path upwards":       {{Name: "../out", Typeflag: tar.TypeReg}},
		"an absolute path":     {{Name: "/tmp/eca-out", Typeflag: tar.TypeReg}},
		"a link out of it":     {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "../.."}},
		"an absolute link":     {{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc"}},
		"through a link":       {{Name: "d/x", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "d/x/../out", Typeflag: tar.TypeReg}, {Name: "../../out", Typeflag: tar.TypeReg}},
		"a device":             {{Name: "a", Typeflag: tar.TypeChar}},
		"a file for two names": {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}},
		"a hard link":          {{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
	} {
		var archive bytes.Buffer
		packed := gzip.NewWriter(&archive)
		w := tar.NewWriter(packed)
		for i := range headers {
			if err := w.WriteHeader(&headers[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := packed.Close(); err != nil {
			t.Fatal(err)
		}
		outer := t.TempDir()
		dir := filepath.Join(outer, "in", "files")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&archive, dir); err == nil {
			t.Errorf("%s: it is accepted", name)
		}
		if fileExists(filepath.Join(outer, "out")) || fileExists(filepath.Join(outer, "in", "out")) {
			t.Errorf("%s: something was written outside", name)
		}
	}
}

// A manifest that refers to files outside its folder cannot be sent.
func TestBundleFiles(t *testing.T) {
	m := &runtime.Manifest{Path: filepath.Join(t.TempDir(), "m.yaml"), Target: "sh agent.sh", Scenarios: []runtime.Scenario{
		{Setup: runtime.Setup{Workspace: &runtime.Fixture{Copy: "repo"}, Tests: "hidden", Environment: &runtime.Environment{
			Kind: runtime.KindDocker, Dockerfile: "image/Dockerfile", Agent: runtime.Grants{Read: []string{"/opt/agent", "docs"}},
		}}},
	}}
	if err := os.WriteFile(filepath.Join(filepath.Dir(m.Path), "agent.sh"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := bundleFiles(m, []string{"lib"})
	if got, want := strings.Join(files, " "), "agent.sh docs hidden image lib m.yaml repo"; err != nil || got != want {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
	m.Scenarios[0].Setup.Tests = "../hidden"
	if _, err := bundleFiles(m, nil); err == nil || !strings.Contains(err.Error(), "../hidden") {
		t.Error(err)
	}
}
