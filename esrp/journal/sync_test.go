package journal

import (
	"fmt"
	"testing"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Without any request for a sync, as for calls outside chats, the list of unsynced bodies does
// not grow forever.
func TestUnsynced(t *testing.T) {
	needs.Long(t)
	j := New(t.TempDir(), Options{})
	defer j.Close()
	o := origin{id: j.id(), at: j.o.Now()}
	left := -1
	for round := range 2 {
		j.record(Requested, func(b *bodies) esrp.Value {
			r := o.request(esrp.Target{Service: ServiceTool, Operation: "t"})
			for i := range maxUnsynced/2 + 1 {
				r.Inputs = append(r.Inputs[:0], b.text("arguments", "text/plain", fmt.Sprint(round, " ", i)))
			}
			v, _ := r.Sealed()
			return v
		})
		if err := j.runAndWait(t.Context(), func(c *Chain) error { left = len(c.unsynced); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if left != 0 {
		t.Errorf("%d bodies wait for a sync", left)
	}
}
