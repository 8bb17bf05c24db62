package layers

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// products are our programs: what each must not link, and how large it may be, stripped. A
// package stands for those below it as well.
func products() map[string]struct {
	without []string
	most    int64 // bytes; 0: any size
} {
	chats := []string{"daemon", "chat", "contexts", "extensions", "mcp", "repomap", "server", "e2a", "editors"}
	tools := []string{"tools/agent", "tools/ask", "tools/editor", "tools/fs", "tools/guide", "tools/permission", "tools/repomap", "tools/search", "tools/shell", "tools/task", "tools/web"}
	evaluation := []string{"ecp/cache", "ecp/cluster", "ecp/grade", "ecp/harbor", "ecp/report", "ecp/runfile", "ecp/runtime", "ecp/stats", "ecp/viewer"}
	const cluster, mcpModule, jsonrpcModule = "github.com/nats-io", "github.com/mark3labs", "go.lsp.dev"
	compilers := []string{"github.com/santhosh-tekuri", "github.com/xeipuu", "github.com/kaptinlin"}
	join := func(lists ...[]string) (out []string) {
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	return map[string]struct {
		without []string
		most    int64
	}{
		"eca":  {join(evaluation, compilers, []string{cluster, "esrp/service"}), 30 << 20},
		"ecp":  {join(chats, tools, compilers, []string{cluster + "/nats-server", mcpModule, jsonrpcModule, "esrp/service"}), 25 << 20},
		"esrp": {join(compilers, []string{"server", "e2a", "editors", jsonrpcModule, "ecp/cluster", "ecp/runfile", "ecp/viewer", "ecp/harbor"}), 0},
	}
}

// linkedAnyway are packages below a forbidden one that a product needs.
func linkedAnyway(product, path string) bool {
	switch path {
	case "chat/event": // in the journal's records
		return true
	case "daemon/judge", "daemon/login", "daemon/providers", "daemon/settings":
		return product == "ecp"
	}
	return false
}

// TestProducts holds our programs apart: evaluating agents needs no chats, and chatting no
// evaluation.
func TestProducts(t *testing.T) {
	for product, rules := range products() {
		out, err := exec.Command("go", "list", "-deps", module+"/cmd/"+product).Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		paths := strings.Fields(string(out))
		const some = 200
		if len(paths) < some {
			t.Fatalf("%s: only %d packages found; the test sees nothing", product, len(paths))
		}
		for _, path := range paths {
			path, _ = strings.CutPrefix(path, module+"/")
			for _, forbidden := range rules.without {
				if (path == forbidden || strings.HasPrefix(path, forbidden+"/")) && !linkedAnyway(product, path) {
					t.Errorf("%s links %s: it must do without %s", product, path, forbidden)
				}
			}
		}
	}
}

// TestSizes builds our programs as they are released. The cause of megabytes more is often one
// call: a program that can run templates, or that looks up methods by names, keeps every
// method of every type. slices.SortFunc takes 9 KB more for each type of element than
// slices.SortStableFunc, which is fast enough for most lists.
func TestSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("NOT TESTED: sizes of programs; the run without -short builds them")
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("NOT TESTED: sizes of programs are known for linux/amd64")
	}
	for product, rules := range products() {
		if rules.most == 0 {
			continue
		}
		file := filepath.Join(t.TempDir(), product)
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, module+"/cmd/"+product)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > rules.most {
			t.Errorf("%s has %d MiB; more than %d are too many", product, info.Size()>>20, rules.most>>20)
		}
	}
}
