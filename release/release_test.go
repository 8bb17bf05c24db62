package main

import (
	"archive/zip"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"
)

func newRelease(t *testing.T) *release {
	t.Helper()
	return &release{
		root: "..", out: t.TempDir(), version: "1.2.0-rc.1", commit: "0123456789abcdef",
		time: time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC), manual: []byte(".TH ECA 1\n"),
		completions: map[string][]byte{}, sums: map[string]string{},
	}
}

func newBuild(t target) *build {
	programs := map[string][]byte{"eca": []byte("#!/bin/sh\necho hello\n"), "ecp": []byte("p"), "esrp": []byte("s")}
	return &build{target: t, programs: programs, modules: []module{{"example.org/a", "v1.0.0"}}, licences: []byte("free\n")}
}

// Editor plugins download archives with these names, and expect the program at the root.
func TestNamesOfEditorPlugins(t *testing.T) {
	r := newRelease(t)
	for _, target := range targets() {
		if err := r.archives(newBuild(target)); err != nil {
			t.Fatal(err)
		}
	}
	for name, program := range map[string]string{
		"eca-native-static-linux-amd64.zip": "eca", "eca-native-linux-amd64.zip": "eca", "eca-native-linux-aarch64.zip": "eca",
		"eca-native-macos-amd64.zip": "eca", "eca-native-macos-aarch64.zip": "eca", "eca-native-windows-amd64.zip": "eca.exe",
	} {
		z, err := zip.OpenReader(filepath.Join(r.out, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if len(z.File) != 1 || z.File[0].Name != program || z.File[0].Mode() != 0o755 {
			t.Errorf("%s has %v", name, z.File)
		}
		z.Close()
		sum, err := os.ReadFile(filepath.Join(r.out, name+".sha256"))
		if err != nil || string(sum) != r.sums[name]+"  "+name+"\n" {
			t.Errorf("%s.sha256: %q, %v", name, sum, err)
		}
	}
}

// Packing the same files again gives identical archives.
func TestFilesAreReproducible(t *testing.T) {
	var first map[string]string
	for range 5 {
		r := newRelease(t)
		if err := r.archives(newBuild(targets()[0])); err != nil {
			t.Fatal(err)
		}
		for _, pack := range []func(*build) error{r.deb, r.rpm, r.npm, r.wheel} {
			if err := pack(newBuild(targets()[0])); err != nil {
				t.Fatal(err)
			}
		}
		if first == nil {
			first = r.sums
		}
		for name, sum := range r.sums {
			if first[name] != sum {
				t.Errorf("%s differs between two builds", name)
			}
		}
	}
}

// Attack: someone replaces a file of the release and its checksum.
func TestSignature(t *testing.T) {
	r := newRelease(t)
	public, private, err := minisign.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	locked, err := minisign.EncryptKey("secret", private)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, locked, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.write("eca.zip", []byte("program")); err != nil {
		t.Fatal(err)
	}
	if err := r.checksums(key, "wrong"); err == nil {
		t.Error("a wrong password signs")
	}
	if err := r.checksums(key, "secret"); err != nil {
		t.Fatal(err)
	}
	list, _ := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
	signature, _ := os.ReadFile(filepath.Join(r.out, "SHA256SUMS.minisig"))
	if !minisign.Verify(public, list, signature) {
		t.Error("the signature is invalid")
	}
	forged := bytes.Replace(list, []byte(sha256hex([]byte("program"))), []byte(sha256hex([]byte("malware"))), 1)
	if bytes.Equal(list, forged) || minisign.Verify(public, forged, signature) {
		t.Error("the signature is valid for another program")
	}
}

func TestRecipes(t *testing.T) {
	r := newRelease(t)
	for _, target := range targets() {
		if err := r.archives(newBuild(target)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.recipes(targets()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eca.rb", "eca.json", "PKGBUILD", "flake.nix", "Dockerfile"} {
		text, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "<<") || name != "Dockerfile" && !strings.Contains(string(text), r.version) {
			t.Errorf("%s is not filled in:\n%s", name, text)
		}
		if name == "eca.json" && !json.Valid(text) {
			t.Errorf("%s: invalid JSON", name)
		}
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		if out, err := exec.Command(bash, "-n", filepath.Join(r.out, "PKGBUILD")).CombinedOutput(); err != nil {
			t.Errorf("PKGBUILD: %v: %s", err, out)
		}
	}
}

// A release does not delete the files of a mistyped directory.
func TestOnlyReleasesAreReplaced(t *testing.T) {
	dir := t.TempDir()
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("eca.zip")
	if err := prepareDir(dir); err == nil {
		t.Error("a directory with other files is emptied")
	}
	put(sumsFile)
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := prepareDir(dir); err == nil {
		t.Error("a directory with folders is emptied")
	}
	if err := os.Remove(filepath.Join(dir, "folder")); err != nil {
		t.Fatal(err)
	}
	if err := prepareDir(dir); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestVersionsOfPackages(t *testing.T) {
	for version, want := range map[string][2]string{
		"1.2.0": {"1.2.0", "1.2.0"}, "1.2.0-rc.1": {"1.2.0~rc.1", "1.2.0rc1"}, "0.0.0-dev": {"0.0.0~dev", "0.0.0.dev0"},
	} {
		r := &release{version: version}
		if got := [2]string{r.systemVersion(), r.pythonVersion()}; got != want {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}

func TestParsePlatforms(t *testing.T) {
	got, err := parsePlatforms("windows/arm64,linux/amd64")
	if err != nil || len(got) != 2 || got[0].os != "windows" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parsePlatforms("plan9/amd64"); err == nil || !strings.Contains(err.Error(), "linux/amd64") {
		t.Errorf("plan9: %v", err)
	}
}

// The bill of materials names the modules of a program.
func TestContents(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	modules, err := modulesOf(map[string][]byte{"test": body})
	if err != nil || !slices.ContainsFunc(modules, func(m module) bool { return m.path == "aead.dev/minisign" }) {
		t.Fatalf("%v, %v", modules, err)
	}
	r := newRelease(t)
	b := newBuild(targets()[0])
	b.modules = modules
	raw, err := r.sbom(b)
	if err != nil || !strings.Contains(string(raw), `"pkg:golang/aead.dev/minisign@v`) || !strings.Contains(string(raw), r.commit) {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := modulesOf(map[string][]byte{"text": []byte("no program")}); err == nil {
		t.Error("a text has modules")
	}
}
