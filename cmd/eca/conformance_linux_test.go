package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// conformWrites gives the program a socket as stdout that preserves the boundaries of writes: each
// write is one message.
func conformWrites(t *testing.T) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs")
	defer ours.Close()
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - {text: \"some words \", repeat: 300}\nturns: []\n")
	here := newPlace(t, p.env()...)
	cmd := here.command("server")
	cmd.Stdout = theirs
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	watchdog := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	for _, body := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"workspaceFolders":[{"uri":"file://` + here.root + `","name":"ws"}]}}`,
		`{"jsonrpc":"2.0","method":"initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"chat/prompt","params":{"message":"go"}}`,
	} {
		if _, err := fmt.Fprintf(stdin, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
			t.Fatal(err)
		}
	}
	packet, writes := make([]byte, 1<<20), 0
	for finished := false; !finished; {
		n, err := ours.Read(packet)
		if err != nil || n == 0 {
			t.Fatalf("after %d writes: %v", writes, err)
		}
		head, body, _ := strings.Cut(string(packet[:n]), "\r\n\r\n")
		if head != "Content-Length: "+strconv.Itoa(len(body)) || !strings.HasPrefix(body, `{"`) || !strings.HasSuffix(body, "}") {
			t.Fatalf("a write is not one message: %q", packet[:n])
		}
		finished = strings.Contains(body, `"state":"finished"`)
		writes++
	}
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil || writes < 10 {
		t.Errorf("%d writes, %v", writes, err)
	}
}
