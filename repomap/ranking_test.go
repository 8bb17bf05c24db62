package repomap

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// ranks returns the position of each file in a map, from 0 on.
func ranks(t *testing.T, files map[string]string, f Focus) map[string]int {
	t.Helper()
	root := t.TempDir()
	testkit.WriteFiles(t, root, files)
	x := New(Options{})
	defer x.Close()
	out := map[string]int{}
	for i, file := range mapOf(t, x, root, f).Files {
		out[file.Path] = i
	}
	return out
}

// Vendored code comes last even if it uses itself much, and first if the focus names it.
func TestVendoredIsLast(t *testing.T) {
	files := map[string]string{"src/app.c": "#include \"app.h\"\nint main(void) { return own_start(); }\n", "src/app.h": "int own_start(void);\n", "tests/app_test.c": "int test_own(void) { return own_start(); }\n"}
	folders := []string{"deps/lib", "contrib/lib", "external/lib", "third_party/lib", "vendor/lib", "src/deps/lib", "a/deps/lib", "x/3rdparty", "src/externals/y"}
	for _, dir := range folders {
		for i := range 6 {
			name := strings.NewReplacer("/", "_").Replace(dir)
			files[fmt.Sprintf("%s/f%d.c", dir, i)] = fmt.Sprintf("int %s_shared_%d(void) { return %s_shared_%d() + %s_shared_0(); }\nint main(void) { return 0; }\n", name, i, name, (i+1)%6, name)
		}
	}
	rank := ranks(t, files, Focus{})
	for _, own := range []string{"src/app.c", "src/app.h", "tests/app_test.c"} {
		if rank[own] > 2 {
			t.Errorf("%s has rank %d of %d, want at most 2", own, rank[own], len(rank))
		}
	}
	for _, dir := range folders {
		if rank := ranks(t, files, Focus{Paths: []string{dir + "/f3.c"}}); rank[dir+"/f3.c"] != 0 {
			t.Errorf("the focus names %s/f3.c, but its rank is %d", dir, rank[dir+"/f3.c"])
		}
	}
}

func TestVendoredPath(t *testing.T) {
	for file, want := range map[string]bool{
		"deps/lua/src/lua.c": true, "deps/x.c": true, "src/deps/x.c": true, "a/b/deps/lua/x.c": true, "a/b/deps/x.py": false,
		"contrib/x.c": true, "django/contrib/admin.py": false, "lib/contrib/x.c": true, "a/external/x.c": true, "Vendor/x.php": true,
		"node_modules/a/b.js": true, "ios/Pods/x.swift": true, "jquery-3.6.0.js": true, "jquery.ui.js": true, "src/jquerysomething.js": false,
		"react.js": false, "react-17.0.2.js": true, "gradlew": true, "scripts/configure": true, "src/dependency.go": false, "dist/a.js": true,
		"src/external.go": false, "depsolver/a.go": false, "fastapi/dependencies/utils.py": false, "ext/native.c": false,
	} {
		if got := roleOf(file, nil) == vendored; got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

// Imports count, and names of macros and constants hardly do.
func TestImportsRank(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		above [2]string // the first one comes before the second one
	}{
		{"names of macros", map[string]string{
			"macros.h": "#define BIG_CHECK_MACRO 1\n#define BIG_OTHER_MACRO 2\n", "list.h": "typedef struct { int a; } list_of_things;\n",
			"a.c": "int a_one(void) { return BIG_CHECK_MACRO + BIG_OTHER_MACRO; }\nlist_of_things a_two;\n",
			"b.c": "int b_one(void) { return BIG_CHECK_MACRO + BIG_OTHER_MACRO; }\nlist_of_things b_two;\n",
		}, [2]string{"list.h", "macros.h"}},
		{"an import without a name", map[string]string{
			"lib/wanted.rb": "puts 1\n", "lib/alone.rb": "puts 2\n", "a.rb": "require_relative 'lib/wanted'\n", "b.rb": "require './lib/wanted'\n",
		}, [2]string{"lib/wanted.rb", "lib/alone.rb"}},
		{"one of two with the name", map[string]string{
			"zz/parse.py": "def parseInput(): pass\n", "aa/parse.py": "def parseInput(): pass\n",
			"x.py": "from zz.parse import parseInput\nparseInput()\n", "y.py": "from zz.parse import parseInput\nparseInput()\n",
		}, [2]string{"zz/parse.py", "aa/parse.py"}},
		{"a short name through its crate", map[string]string{
			"kit/src/lib.rs": "pub mod task;\npub use task::spawn;\n", "kit/src/task/mod.rs": "mod spawn;\nmod other;\npub use spawn::spawn;\n",
			"kit/src/task/spawn.rs": "pub fn spawn() {}\n", "kit/src/task/other.rs": "pub fn other() {}\n",
			"app/src/a.rs": "fn run_a() { kit::spawn(); }\n", "app/src/b.rs": "use kit::spawn;\nfn run_b() { spawn(); }\n",
		}, [2]string{"kit/src/task/spawn.rs", "kit/src/task/other.rs"}},
		{"modules of a script", map[string]string{
			"src/run/index.ts": "export * from './go'\n", "src/run/go.ts": "export const go = () => 1\n", "src/run/stay.ts": "export const stay = () => 1\n",
			"src/a.ts": "import { go } from './run'\n", "src/b.ts": "import { go } from './run/go.js'\n",
		}, [2]string{"src/run/go.ts", "src/run/stay.ts"}},
		{"tests", map[string]string{
			"shop.py": "class ShopBasket: pass\n", "test_shop.py": "class TestBasketOfShop: pass\ndef main(): ShopBasket()\n",
			"test_more.py": "TestBasketOfShop()\n", "test_other.py": "TestBasketOfShop()\n", "zoo.py": "x = 1\n",
		}, [2]string{"zoo.py", "test_shop.py"}},
		{"generated code", map[string]string{
			"shop.go": "package a\n\nfunc lonely() {}\n", "shop.pb.go": "package a\n\ntype ShopMessage struct{}\n",
			"b_test.go": "package a\n\nfunc TestB() { _ = ShopMessage{} }\n",
		}, [2]string{"b_test.go", "shop.pb.go"}},
	} {
		rank := ranks(t, c.files, Focus{})
		if rank[c.above[0]] >= rank[c.above[1]] {
			t.Errorf("%s: %v", c.name, rank)
		}
	}
}

// Files of other folders come between the files of a large folder, unless the focus names that
// folder.
func TestInterleaveFolders(t *testing.T) {
	files := map[string]string{}
	for i := range 200 {
		files[fmt.Sprintf("big/f%03d.go", i)] = fmt.Sprintf("package big\n\nfunc BigThing%d() { BigThing%d(); BigThing%d() }\n", i, (i+1)%200, (i+7)%200)
	}
	for i := range 50 {
		files[fmt.Sprintf("d%d/f.go", i)] = "package d\n\nfunc run() {}\n"
	}
	rank := ranks(t, files, Focus{})
	var order []string
	for file := range rank {
		order = append(order, file)
	}
	slices.SortFunc(order, func(a, b string) int { return rank[a] - rank[b] })
	big := 0
	for _, file := range order[:100] {
		if strings.HasPrefix(file, "big/") {
			big++
		}
	}
	if big < 50 || big > 75 {
		t.Errorf("%d of the first 100 files are in one folder of 51", big)
	}
	rank = ranks(t, files, Focus{Paths: []string{"big"}})
	for i := range 50 {
		if file := fmt.Sprintf("d%d/f.go", i); rank[file] < 200 {
			t.Fatalf("%s comes before files of the folder that the focus names", file)
		}
	}
}
