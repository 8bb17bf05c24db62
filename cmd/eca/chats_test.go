package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Stored chats are listed, found, shown, pinned, exported and deleted; an unknown chat is an error.
func TestChats(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps: [{text: \"The ferret \\e[31manswers.\"}]\nturns: []\n")
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "where is the walrus"); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	chats := func(want int, args ...string) string {
		t.Helper()
		out, errOut, code := runProgram(t, here, "", append([]string{"chats"}, args...)...)
		if code != want || strings.ContainsRune(out+errOut, '\x1b') {
			t.Errorf("%q: exit %d, want %d: %q %q", args, code, want, out, errOut)
		}
		return out
	}
	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(chats(0, "list", "--json")), &listed); err != nil || listed.ID == "" {
		t.Fatalf("list: %+v, %v", listed, err)
	}
	var found struct {
		Results []struct{ ChatID, Role, Text string }
	}
	if err := json.Unmarshal([]byte(chats(0, "search", "--json", "walr*", "role:user")), &found); err != nil || len(found.Results) != 1 || found.Results[0].ChatID != listed.ID {
		t.Errorf("search: %+v, %v", found, err)
	}
	for _, filter := range []string{"since:yesterday", "role:bot", "workspace:"} { // is not left out
		for _, asJSON := range []string{"--json=true", "--json=false"} {
			if out := chats(1, "search", asJSON, filter, "walrus"); out != "" {
				t.Errorf("search %s: %s", filter, out)
			}
		}
	}
	if out := chats(0, "search", "ferret"); !strings.Contains(out, listed.ID) || !strings.Contains(out, "The ferret") {
		t.Errorf("search: %s", out)
	}
	if out := chats(0, "show", listed.ID); !strings.Contains(out, "where is the walrus") || !strings.Contains(out, "The ferret") {
		t.Errorf("show: %s", out)
	}
	if out := chats(0, "export", listed.ID); !json.Valid([]byte(out)) || !strings.Contains(out, "eca-chat") {
		t.Errorf("export: %s", out)
	}
	file := filepath.Join(here.root, "out.json")
	chats(0, "export", listed.ID, file)
	chats(1, "export", listed.ID, file) // it exists
	for _, args := range [][]string{{"show", "none"}, {"export", "none"}, {"delete", "none"}, {"pin", "none"}} {
		chats(1, args...)
	}
	chats(0, "pin", listed.ID)
	chats(0, "unpin", listed.ID)
	chats(0, "delete", listed.ID)
	if out := chats(0, "list"); out != "" {
		t.Errorf("after its deletion: %s", out)
	}
	if out := chats(0, "search", "walrus"); out != "" {
		t.Errorf("after its deletion: %s", out)
	}
}
