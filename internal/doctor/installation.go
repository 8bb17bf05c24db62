package doctor

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Commit returns the commit that the program was built from, as in " (commit 0123456789ab,
// 2026-01-31)". It is empty for programs that were built without git.
func Commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	values := map[string]string{}
	for _, s := range info.Settings {
		values[s.Key] = s.Value
	}
	commit, date, changed := values["vcs.revision"], values["vcs.time"], ""
	if len(commit) < 12 || len(date) < len("2026-01-31") {
		return ""
	}
	if values["vcs.modified"] == "true" {
		changed = ", with changes"
	}
	return " (commit " + commit[:12] + ", " + date[:len("2026-01-31")] + changed + ")"
}

// Installation describes the running executable and the package manager that installed it.
func Installation() string {
	path, err := os.Executable()
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "unknown: " + err.Error()
	}
	exists := func(name string) bool {
		_, err := os.Stat(name)
		return err == nil
	}
	return path + ", " + installedBy(path, exists)
}

// installedBy determines from a program's path which package manager installed it.
func installedBy(path string, exists func(string) bool) string {
	slashed := filepath.ToSlash(path)
	if i := strings.Index(slashed, ":"); i == 1 { // a Windows drive
		slashed = slashed[2:]
	}
	dir := filepath.Dir(path)
	for _, known := range []struct{ part, manager string }{
		{"/Cellar/", "by Homebrew"},
		{"/node_modules/", "by npm"},
		{"/scoop/apps/", "by Scoop"},
		{"/nix/store/", "by Nix"},
		{"/go/bin/", "by go install"},
	} {
		if strings.Contains(slashed, known.part) {
			return known.manager
		}
	}
	switch {
	case exists(filepath.Join(filepath.Dir(dir), "pyvenv.cfg")):
		return "by pip, pipx or uv"
	case slashed == "/usr/bin/eca" && exists("/var/lib/dpkg/info/eca.list"):
		return "by the Debian package eca"
	case slashed == "/usr/bin/eca":
		return "by a package of the system"
	}
	return "copied or built by hand"
}
