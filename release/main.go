// Command release builds the files of a release: programs for six platforms, archives with the names
// that editor plugins download, packages, checksums, and a signature.
//
// Two builds of the same commit with the same version of Go are byte-identical: all times are that of
// the commit, all entries are sorted, and no file contains a path of the build machine. The command
// publishes nothing, and only `go build` uses the network. `make release` runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := flag.String("out", "dist", "write the files into this `directory`, which must be new, empty or an earlier release")
	platforms := flag.String("platforms", "", "build only for these platforms, as in linux/amd64,windows/arm64")
	key := flag.String("key", "", "sign the checksums with this minisign key `file`; the variable ECA_RELEASE_PASSWORD unlocks it")
	flag.Parse()
	if err := run(ctx, *out, *platforms, *key, os.Getenv("ECA_RELEASE_PASSWORD")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is a release under construction.
type release struct {
	root, out   string
	version     string // without "v"
	commit      string
	time        time.Time         // of the commit
	manual      []byte            // eca.1
	completions map[string][]byte // by shell
	sums        map[string]string // SHA-256 of the written files, by name
}

func run(ctx context.Context, out, platforms, key, password string) error {
	targets, err := parsePlatforms(platforms)
	if err != nil {
		return err
	}
	root, err := git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	r := &release{root: root, out: out, version: version(ctx), sums: map[string]string{}}
	if err := prepareDir(out); err != nil {
		return err
	}
	if err := r.readMetadata(ctx); err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Println("building", t.String())
		if err := r.platform(ctx, t); err != nil {
			return fmt.Errorf("cannot build for %s: %w", t, err)
		}
	}
	if err := r.npmWrapper(targets); err != nil {
		return err
	}
	if err := r.recipes(targets); err != nil {
		return err
	}
	return r.checksums(key, password)
}

// prepareDir creates the directory out, or empties it if it contains an earlier release. It fails if
// the directory contains anything else.
func prepareDir(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	isRelease := slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == sumsFile }) && !slices.ContainsFunc(entries, os.DirEntry.IsDir)
	if len(entries) > 0 && !isRelease {
		return fmt.Errorf("%s is not empty, and not a finished release; remove it, or choose another directory with -out", out)
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.MkdirAll(out, 0o755)
}

// platform builds the programs of one platform and writes its archives and packages.
func (r *release) platform(ctx context.Context, t target) error {
	b, err := r.build(ctx, t)
	if err != nil {
		return err
	}
	if err := r.archives(b); err != nil {
		return err
	}
	if t.os == "linux" {
		if err := r.deb(b); err != nil {
			return err
		}
		if err := r.rpm(b); err != nil {
			return err
		}
	}
	if err := r.npm(b); err != nil {
		return err
	}
	return r.wheel(b)
}

// write stores a file of the release, and its checksum.
func (r *release) write(name string, body []byte) error {
	r.sums[name] = sha256hex(body)
	return os.WriteFile(filepath.Join(r.out, name), body, 0o644)
}

// version returns the tag of the commit without "v". For an untagged commit, it returns 0.0.0-dev,
// which sorts before all releases.
func version(ctx context.Context) string {
	tag, err := git(ctx, "describe", "--tags", "--exact-match", "--match", "v[0-9]*")
	if err != nil {
		return "0.0.0-dev"
	}
	return strings.TrimPrefix(tag, "v")
}

func git(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

// parsePlatforms parses the value of the flag -platforms.
func parsePlatforms(list string) ([]target, error) {
	all := targets()
	if list == "" {
		return all, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown platform %q; releases are built for %v", name, all)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
