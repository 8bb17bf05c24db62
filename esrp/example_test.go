package esrp_test

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/esrp"
)

// The canonical form of a document does not depend on the order of members or on white space, and
// neither does its hash.
func ExampleCanonical() {
	for _, doc := range []string{`{"b": 1, "a": [true, null]}`, `{"a":[true,null],"b":1}`} {
		canonical, err := esrp.Canonical([]byte(doc))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(string(canonical), esrp.HashBytes(canonical)[:8])
	}
	// Output:
	// {"a":[true,null],"b":1} 51705a2c
	// {"a":[true,null],"b":1} 51705a2c
}
