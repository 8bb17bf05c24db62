package main

import (
	"bytes"
	"compress/gzip"
	"crypto/md5" //nolint:gosec // md5sums files in .deb packages contain MD5
	"fmt"
	"strings"

	"github.com/google/rpmpack"
)

const (
	homepage = "https://github.com/seed-dec29ce4/eca"
	summary  = "Coding-assistant daemon for editors"
	contact  = "The eca authors <security@users.noreply.github.com>"
)

// packageFiles returns the files of Linux packages, with paths relative to the root directory.
func (r *release) packageFiles(b *build, zshDir string) ([]file, error) {
	var page bytes.Buffer
	w, err := gzip.NewWriterLevel(&page, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(r.manual); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return sortByPath([]file{
		{"usr/bin/eca", 0o755, b.programs["eca"]},
		{"usr/share/man/man1/eca.1.gz", 0o644, page.Bytes()},
		{"usr/share/bash-completion/completions/eca", 0o644, r.completions["bash"]},
		{"usr/share/zsh/" + zshDir + "/_eca", 0o644, r.completions["zsh"]},
		{"usr/share/fish/vendor_completions.d/eca.fish", 0o644, r.completions["fish"]},
		{"usr/share/doc/eca/copyright", 0o644, append([]byte("eca is under the Apache License 2.0. It contains these modules:\n\n"), b.licences...)},
	}), nil
}

// systemVersion returns the version in the format of .deb and .rpm, in which a tilde makes a
// prerelease sort before the release.
func (r *release) systemVersion() string { return strings.Replace(r.version, "-", "~", 1) }

func (r *release) deb(b *build) error {
	files, err := r.packageFiles(b, "vendor-completions")
	if err != nil {
		return err
	}
	size := 0
	var sums strings.Builder
	for i, f := range files {
		size += (len(f.body) + 1023) / 1024
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum(f.body), f.path) //nolint:gosec // md5sums files contain MD5
		files[i].path = "./" + f.path
	}
	version := r.systemVersion()
	control := fmt.Sprintf("Package: eca\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nInstalled-Size: %d\nSection: devel\nPriority: optional\nRecommends: git, ripgrep\nHomepage: %s\nDescription: %s\n It streams a model's answers to an editor, runs tools with approval, and keeps chats.\n",
		version, b.arch, contact, size, homepage, summary)
	data, err := tarArchive(files, r.time, true)
	if err != nil {
		return err
	}
	controlArchive, err := tarArchive([]file{{"./control", 0o644, []byte(control)}, {"./md5sums", 0o644, []byte(sums.String())}}, r.time, true)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	for _, member := range []file{{path: "debian-binary", body: []byte("2.0\n")}, {path: "control.tar.gz", body: controlArchive}, {path: "data.tar.gz", body: data}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", member.path, r.time.Unix(), 0, 0, 0o100644, len(member.body))
		out.Write(member.body)
		if len(member.body)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	return r.write("eca_"+version+"_"+b.arch+".deb", out.Bytes())
}

func (r *release) rpm(b *build) error {
	files, err := r.packageFiles(b, "site-functions")
	if err != nil {
		return err
	}
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[b.arch]
	pkg, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: "eca", Version: r.systemVersion(), Release: "1", Arch: arch, OS: "linux",
		Summary: summary, Description: summary + ".", URL: homepage, Licence: "Apache-2.0", Packager: contact,
		BuildHost: "localhost", BuildTime: r.time, Compressor: "gzip:9",
	})
	if err != nil {
		return err
	}
	for _, f := range files {
		pkg.AddFile(rpmpack.RPMFile{Name: "/" + f.path, Body: f.body, Mode: uint(f.mode), Owner: "root", Group: "root", MTime: uint32(r.time.Unix())})
	}
	var out bytes.Buffer
	if err := pkg.Write(&out); err != nil {
		return err
	}
	return r.write("eca-"+r.systemVersion()+"-1."+arch+".rpm", out.Bytes())
}
