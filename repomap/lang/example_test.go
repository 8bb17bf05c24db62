package lang_test

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// List the definitions of a file.
func ExampleScanner_Scan() {
	golang, _ := lang.New().Of("shop.go")
	var scanner lang.Scanner
	definitions, _ := scanner.Scan(golang, []byte("package shop\n\ntype Order struct{ Items []Item }\n\nfunc (o *Order) Total() int { return 0 }\n"))
	for _, d := range definitions {
		fmt.Printf("%d: %s\n", d.Line, d.Signature)
	}
	// Output:
	// 3: type Order struct
	// 5: func (o *Order) Total() int
}
