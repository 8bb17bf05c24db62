package server

import (
	"reflect"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// Every method of the interface is in the table under its own name, and both are what
// the protocol lists.
func TestTableIsComplete(t *testing.T) {
	methods := table(&Server{})
	listed := map[string]bool{}
	for _, m := range protocol.Methods() {
		if m.Direction != protocol.ToServer {
			continue
		}
		listed[m.Name] = true
		if methods[m.Name] == nil {
			t.Errorf("%s is not in the table", m.Name)
		}
	}
	for name := range methods {
		if !listed[name] {
			t.Errorf("%s is not listed in protocol.Methods", name)
		}
	}
	face := reflect.TypeFor[protocol.Server]()
	names := map[string]bool{}
	for name := range methods {
		names[strings.ToLower(strings.ReplaceAll(name, "/", ""))] = true
	}
	for i := range face.NumMethod() {
		if name := face.Method(i).Name; !names[strings.ToLower(name)] {
			t.Errorf("%s has no entry in the table", name)
		}
	}
	if face.NumMethod() != len(methods) {
		t.Errorf("%d methods, %d entries", face.NumMethod(), len(methods))
	}
}
