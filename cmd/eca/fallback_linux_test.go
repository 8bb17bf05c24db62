package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// withoutFeature makes TestFallbacks replace itself by eca on a kernel that lacks a feature.
const withoutFeature = "ECA_TEST_WITHOUT"

// On a kernel that lacks a feature, eca asks before commands that the sandbox cannot confine without it.
func TestFallbacks(t *testing.T) {
	if feature := os.Getenv(withoutFeature); feature != "" {
		runWithout(t, feature)
	}
	needs.Long(t)
	here := newPlace(t, `ECA_CONFIG={"toolCall": {"unasked": "workspace"}}`)
	here.root = testkit.OutOfTemp(t)
	run := func(feature string, args ...string) string {
		cmd := here.command(append([]string{"-test.run=^TestFallbacks$", "--"}, args...)...)
		cmd.Env = slices.DeleteFunc(append(cmd.Env, withoutFeature+"="+feature), func(v string) bool { return strings.HasPrefix(v, asProgram) })
		out, err := cmd.Output()
		if err != nil && args[0] != "doctor" { // which fails if it finds problems
			t.Fatalf("without %s: %v: %s", feature, err, out)
		}
		return string(out)
	}
	explain := func(feature, command string) (got struct{ Verdict, Rule, Reason string }) {
		raw := run(feature, "permission", "explain", "--json", "--", command)
		if err := json.Unmarshal([]byte(raw), &got); err != nil {
			t.Fatalf("%s: %v in %s", feature, err, raw)
		}
		return got
	}
	if v := explain("nothing", "make"); v.Rule != "sandbox.workspace" {
		t.Skipf("NOT TESTED: this machine lacks features itself: %+v; use Linux 6.2 or newer with user namespaces", v)
	}
	for _, c := range []struct {
		feature, reads, other, doctor string
	}{
		{"nothing", "sandbox.reads", "sandbox.workspace", "Landlock (version"},
		{"Landlock", "toolCall.approval.byDefault", "toolCall.approval.byDefault", "no Landlock"},
		{"namespaces", "sandbox.reads", "toolCall.approval.byDefault", "namespaces"},
	} {
		for command, rule := range map[string]string{"ls": c.reads, "make": c.other} {
			want := map[bool]string{true: "allow", false: "ask"}[strings.HasPrefix(rule, "sandbox.")]
			if v := explain(c.feature, command); v.Rule != rule || v.Verdict != want {
				t.Errorf("without %s: %s: %+v", c.feature, command, v)
			}
		}
		if report := run(c.feature, "doctor", "--offline"); !strings.Contains(report, c.doctor) {
			t.Errorf("without %s: the report does not say %q:\n%s", c.feature, c.doctor, report)
		}
	}
}

// runWithout replaces the process by eca, with the arguments after --. A filter refuses the system
// calls of a feature, as a kernel does that lacks it.
func runWithout(t *testing.T, feature string) {
	t.Helper()
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		ret    = unix.BPF_RET | unix.BPF_K
		spaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	)
	filter := []unix.SockFilter{{Code: load}}
	refuse := func(call uint32, err syscall.Errno) {
		filter = append(filter, unix.SockFilter{Code: equal, K: call, Jf: 1}, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(err)})
	}
	switch feature {
	case "Landlock":
		refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)
	case "namespaces":
		refuse(unix.SYS_UNSHARE, unix.EPERM)
		refuse(unix.SYS_CLONE3, unix.ENOSYS)
		filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3}, unix.SockFilter{Code: load, K: 16}, // the flags
			unix.SockFilter{Code: anyBit, K: spaces, Jf: 1}, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	filter = append(filter, unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW})
	runtime.LockOSThread()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{self}, os.Args[slices.Index(os.Args, "--")+1:]...)
	t.Fatal(syscall.Exec(self, args, append(os.Environ(), asProgram+"=1")))
}
