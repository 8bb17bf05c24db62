package importer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// memory is a Store for tests.
type memory struct {
	marks map[string]bool
	chats map[string]chat.Meta
	busy  string
}

func newMemory() *memory { return &memory{marks: map[string]bool{}, chats: map[string]chat.Meta{}} }

func (m *memory) Imported(_ context.Context, source string) (bool, error) {
	return m.marks[source], nil
}

func (m *memory) MarkImported(_ context.Context, source string) error {
	m.marks[source] = true
	return nil
}

func (m *memory) Import(_ context.Context, source string, meta chat.Meta, _ []event.Event) (bool, error) {
	_, known := m.chats[meta.ID]
	known = known || m.marks[source]
	m.marks[source] = true
	if !known {
		m.chats[meta.ID] = meta
	}
	return !known, nil
}

func (m *memory) Lock(id string) (func(), bool, error) { return func() {}, id != m.busy, nil }

// cacheFolder makes the cache folder of a workspace with files of a sample in it.
func cacheFolder(t *testing.T, roots []string, sample string, files map[string]string) (cache, folder string) {
	t.Helper()
	cache = filepath.Join(t.TempDir(), "eca")
	folder = filepath.Join(cache, "some_name_"+hashes(roots)[0])
	if err := os.MkdirAll(filepath.Join(folder, "chats"), 0o700); err != nil {
		t.Fatal(err)
	}
	if sample != "" {
		if err := os.CopyFS(filepath.Join(folder, "chats"), os.DirFS(filepath.Join("testdata", sample))); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cache, folder
}

// describeReport renders a report without paths.
func describeReport(r Report) string {
	slices.Sort(r.Imported)
	return fmt.Sprintf("imported %v known %d empty %d subagents %d busy %d problems %d", r.Imported, r.Known, r.Empty, r.Subagents, r.Busy, len(r.Problems))
}

func TestImport(t *testing.T) {
	ctx, roots := context.Background(), []string{"/home/u/app"}
	cache, folder := cacheFolder(t, roots, "several-chats", map[string]string{
		"chats/subagent-abc.transit.json":       `{"~:version":7,"~:chat":{"~:id":"subagent-abc","~:messages":[]}}`,
		"chats/child-chat-1.transit.json":       `{"~:version":7,"~:chat":{"~:id":"child-chat-1","~:subagent":true,"~:messages":[]}}`,
		"chats/truncated-1.transit.json":        `["^ ","~:version",7,"~:chat",["^ ","~:id","trunc`,
		"chats/not-a-chat.transit.json":         `["~#'",7]`,
		"chats/future-chat-1.transit.json":      `{"~:version":8,"~:chat":{"~:id":"future-chat-1","~:messages":[]}}`,
		"chats/bad-messages.transit.json":       `{"~:version":7,"~:chat":{"~:id":"bad-messages","~:messages":[7]}}`,
		"chats/spaces.transit.json":             `{"~:version":7,"~:chat":{"~:id":"a b","~:title":"t"}}`,
		"chats/index.transit.json.lock":         ``,
		"chats/my-own-id-1.transit.json.12.tmp": `[`,
	})
	if err := os.Mkdir(filepath.Join(folder, "chats", "folder.transit.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newMemory()
	r := Import(ctx, s, cache, roots)
	const chats = "[50d4095d-19ba-452f-b373-d939fcad5271 my-own-id-1]"
	if got, want := describeReport(r), "imported "+chats+" known 0 empty 1 subagents 2 busy 0 problems 6"; got != want {
		t.Errorf("%s\nwant %s\n%v", got, want, r.Problems)
	}
	for _, p := range r.Problems {
		if !strings.Contains(p.Error(), folder) {
			t.Errorf("a problem does not name its file: %v", p)
		}
	}
	if m := s.chats["my-own-id-1"]; m.Title != "Some Cool Title" || !slices.Equal(m.Roots, roots) {
		t.Errorf("%+v", m)
	}

	// The second import tries only the broken files again.
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [] known 0 empty 0 subagents 0 busy 0 problems 6" {
		t.Error(got)
	}
	// A chat that was deleted does not come back, not even if the reference writes it.
	delete(s.chats, "my-own-id-1")
	file := filepath.Join(folder, "chats", "my-own-id-1.transit.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := describeReport(Import(ctx, s, cache, roots)); !strings.HasPrefix(got, "imported [] known 1 ") {
		t.Error(got)
	}
	// A file that was broken or empty is imported when it has a chat.
	for _, name := range []string{"truncated-1", "ca3704aa0b06f5954c79ee837faa152d84d6b2d42838f0637a15eda8337dbdce"} {
		content := fmt.Sprintf(`{"~:version":7,"~:chat":{"~:id":"%.10s","~:messages":[{"~:role":"user","~:content":"hi"}]}}`, name)
		if err := os.WriteFile(filepath.Join(folder, "chats", name+suffix), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := describeReport(Import(ctx, s, cache, roots)); !strings.HasPrefix(got, "imported [ca3704aa0b truncated-] known 0 ") {
		t.Error(got)
	}
}

// An import does not change a chat that exists already, and imports a chat that is in use later.
func TestImportOverOthers(t *testing.T) {
	ctx, roots := context.Background(), []string{"/home/u/app"}
	cache, _ := cacheFolder(t, roots, "several-chats", nil)
	s := newMemory()
	s.chats["my-own-id-1"] = chat.Meta{Title: "mine"}
	s.busy = "50d4095d-19ba-452f-b373-d939fcad5271"
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [] known 1 empty 1 subagents 0 busy 1 problems 0" || s.chats["my-own-id-1"].Title != "mine" {
		t.Error(got)
	}
	s.busy = ""
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [50d4095d-19ba-452f-b373-d939fcad5271] known 0 empty 0 subagents 0 busy 0 problems 0" {
		t.Error(got)
	}
}

// Early versions of the reference server stored all chats in one file, which is imported only if
// there is no folder of chats.
func TestImportLegacy(t *testing.T) {
	ctx, roots := context.Background(), []string{"/home/u/app"}
	const legacy = `{"~:version":6,"~:chats":{"old-1":{"~:messages":[{"~:role":"user","~:content":"hi"}]},"old-2":{"~:title":"t"},"subagent-1":{}}}`
	cache, folder := cacheFolder(t, roots, "", map[string]string{legacyFile: legacy})
	s := newMemory()
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [] known 0 empty 0 subagents 0 busy 0 problems 0" {
		t.Error(got)
	}
	if err := os.Remove(filepath.Join(folder, "chats")); err != nil {
		t.Fatal(err)
	}
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [old-1 old-2] known 0 empty 0 subagents 1 busy 0 problems 0" {
		t.Error(got)
	}
	if got := describeReport(Import(ctx, s, cache, roots)); got != "imported [] known 0 empty 0 subagents 0 busy 0 problems 0" {
		t.Error(got)
	}
}

func TestFolders(t *testing.T) {
	cache := t.TempDir()
	for _, name := range []string{"app_K_fDpmu2", "K_fDpmu2", "app_UoBy1W4y", "x_K_fDpmu", "toolCallOutputs"} {
		if err := os.Mkdir(filepath.Join(cache, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for roots, want := range map[string]string{
		"/home/u/app": "K_fDpmu2 app_K_fDpmu2", "/home/u/app/": "K_fDpmu2 app_K_fDpmu2", "/home/u/lib /home/u/app /home/u/lib": "app_UoBy1W4y", "/home/u": "",
	} {
		got, err := Folders(cache, strings.Fields(roots))
		for i := range got {
			got[i] = filepath.Base(got[i])
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v %v", roots, got, err)
		}
	}
	if got, err := Folders(filepath.Join(cache, "none"), nil); got != nil || err != nil {
		t.Errorf("no cache: %v %v", got, err)
	}
}

// For a linked worktree, the importer looks for the chats of the repository and for those that were
// stored for the worktree itself.
func TestLinkedWorktree(t *testing.T) {
	dir := t.TempDir()
	repo, linked := filepath.Join(dir, "repo"), filepath.Join(dir, "linked")
	private := filepath.Join(repo, ".git", "worktrees", "linked")
	for _, d := range []string{private, linked} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, content := range map[string]string{filepath.Join(linked, ".git"): "gitdir: " + private + "\n", filepath.Join(private, "commondir"): "../..\n", filepath.Join(private, "gitdir"): filepath.Join(linked, ".git") + "\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{hash([]string{repo}), hash([]string{linked})}
	if d := cmp.Diff(want, hashes([]string{linked})); d != "" {
		t.Error(d)
	}
	if err := os.WriteFile(filepath.Join(linked, ".git"), []byte("gitdir: ../repo/.git/modules/linked\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := hashes([]string{linked}); len(got) != 1 || got[0] != want[1] {
		t.Errorf("the hashes of a submodule are %v, want only its own, %s", got, want[1])
	}
}

func TestChatFile(t *testing.T) {
	for id, want := range map[string]string{
		"my-own-id-1": "my-own-id-1", "nope": "ca3704aa0b06f5954c79ee837faa152d84d6b2d42838f0637a15eda8337dbdce",
		"index-of-chats": "", "Upper-Case-1": "", "../../etc/passwd": "",
	} {
		got := strings.TrimSuffix(chatFile(id), suffix)
		if want != "" && got != want || want == "" && (len(got) != 64 || strings.Contains(got, "/")) {
			t.Errorf("%s: %s", id, got)
		}
	}
}
