package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// wrapper is the system program that runs another program within a profile.
const wrapper = "/usr/bin/sandbox-exec"

// Probe reports which bounds this system can enforce.
func Probe() Support {
	if _, err := os.Stat(wrapper); err != nil {
		return Support{Without: wrapper + " is missing"}
	}
	return Support{Holds: true, With: "sandbox-exec"}
}

// Gaps names what is not enforced on this system.
func Gaps() []string {
	return []string{
		"commands that only read can read all files that you can read, and start all programs",
		"with the network allowed, commands reach services of this machine as well",
	}
}

// Wrap returns the command that runs a program within the bounds of a policy.
func Wrap(p Policy, path string, args []string) (string, []string) {
	return wrapper, append([]string{"-p", profile(p), path}, args...)
}

// profile returns the bounds in the language of sandbox-exec, in which later rules win.
func profile(p Policy) string {
	var b strings.Builder
	b.WriteString("(version 1)(allow default)(deny file-write*)(allow file-write* (subpath \"/dev\"))")
	for _, dir := range p.writable() {
		fmt.Fprintf(&b, "(allow file-write* (subpath %s))", quote(dir))
	}
	for _, dir := range p.Write {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			fmt.Fprintf(&b, "(deny file-write* (subpath %s) (subpath %s))", quote(filepath.Join(real, ".eca")), quote(filepath.Join(real, ".git", "hooks")))
		}
	}
	if !p.Network {
		b.WriteString("(deny network*)")
	}
	return b.String()
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}
