// Package nvim has the tests of the plugin for Neovim, which is written in Lua.
package nvim

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// agedState names the variable with a state folder, whose chats this program makes old instead of
// running tests.
const agedState = "AGED_STATE"

func TestMain(m *testing.M) {
	dir := os.Getenv(agedState)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := age(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// age makes all chats of a state folder a month old.
func age(ctx context.Context, dir string) error {
	s := store.New(dir)
	defer s.Close()
	chats, err := s.Chats(ctx, nil)
	if err == nil && len(chats) == 0 {
		err = errors.New("there are no chats")
	}
	for _, c := range chats {
		if err == nil {
			_, err = s.ChangeMeta(ctx, c.ID, func(m *chat.Meta) { m.Updated = m.Updated.AddDate(0, -1, 0) })
		}
	}
	return err
}

// TestNvimClient uses the plugin in a real Neovim, by what its user types, with the real daemon
// and a scripted model. tests/run.lua says how to run one of its tests.
func TestNvimClient(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	nvim := needs.Program(t, "nvim", "neovim")
	version, err := exec.Command(nvim, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`NVIM v0\.(\d+)`).FindSubmatch(version); m != nil {
		if minor, _ := strconv.Atoi(string(m[1])); minor < 10 {
			t.Skipf("NOT TESTED: the plugin needs Neovim 0.10, this is %s; install a newer one, of neovim.io or of Debian's next release", m[0])
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	eca := filepath.Join(t.TempDir(), "eca")
	if out, err := exec.Command("go", "build", "-o", eca, "../../cmd/eca").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tape, err := os.ReadFile("tests/wire.yaml")
	if err != nil {
		t.Fatal(err)
	}
	player, err := cassette.Parse(tape)
	if err != nil {
		t.Fatal(err)
	}
	wire := httptest.NewServer(player.Handler(nil))
	defer wire.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // each wait of the tests has its own limit
	defer cancel()
	cmd := exec.CommandContext(ctx, nvim, "--headless", "--clean", "-l", "tests/run.lua")
	cmd.Env = append(os.Environ(), "ECA="+eca, "NVIM_PROGRAM="+nvim, "WIRE="+wire.URL, "AGE="+self)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if passed := strings.Count("\n"+string(out), "\nok "); err != nil || passed == 0 {
		t.Errorf("%v, %d passed", err, passed)
	}
}
