package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The user can abort a login with Ctrl-C, Ctrl-D and SIGTERM, whatever it waits for. Ctrl-C and
// SIGTERM end with the exit code of an interrupt.
func TestLoginCanBeInterrupted(t *testing.T) {
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/device" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error": "authorization_pending"}`)
			return
		}
		_, _ = io.WriteString(w, `{"device_code": "d", "user_code": "AB-12", "verification_uri": "http://login.example", "expires_in": 600, "interval": 60}`)
	}))
	defer issuer.Close()
	config := `ECA_CONFIG={"providers": {"acme": {"api": "openai-chat", "url": "https://acme.example", "fetchModels": false,
		"auth": {"clientId": "c", "authorizeUrl": "` + issuer.URL + `/authorize", "tokenUrl": "` + issuer.URL + `/token", "deviceUrl": "` + issuer.URL + `/device"}}}}`
	for name, args := range map[string]string{"API key:": "login openai", "Method [": "login acme", "AB-12": "login acme --method device", "/authorize": "login acme --method oauth"} {
		for key, want := range map[string]int{"\x03": exitInterrupted, "\x04": 1, "SIGTERM": exitInterrupted} {
			if key == "\x04" && name == "AB-12" {
				continue // nothing is read
			}
			t.Run(fmt.Sprintf("%s %q", args, key), func(t *testing.T) {
				o := runOnTerminal(t, newPlace(t, config, "BROWSER=true"), strings.Fields(args)...)
				o.await(name)
				if key == "SIGTERM" {
					if err := syscall.Kill(childOf(t, o.cmd.Process.Pid), syscall.SIGTERM); err != nil {
						t.Fatal(err)
					}
				} else {
					o.press(key)
				}
				if said, code := o.end(); code != want || !strings.Contains(said, "nothing was entered; the login is unchanged") {
					t.Errorf("exit code %d: %q", code, said)
				}
			})
		}
	}
}

// Ctrl-C also ends the check of a key that was entered. The message does not say that nothing was.
func TestKeyCheckCanBeInterrupted(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer silent.Close()
	o := runOnTerminal(t, newPlace(t, `ECA_CONFIG={"providers": {"acme": {"api": "openai-chat", "url": "`+silent.URL+`"}}}`), "login", "acme")
	o.await("API key")
	o.press("sk-entered\r")
	o.await("Waiting for acme to check the key")
	o.press("\x03")
	if said, code := o.end(); code != exitInterrupted || !strings.Contains(said, "interrupted; the login is unchanged") || strings.Contains(said, "nothing was entered") {
		t.Errorf("exit code %d: %q", code, said)
	}
}

// childOf returns the id of the only child of a process.
func childOf(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return child
}
