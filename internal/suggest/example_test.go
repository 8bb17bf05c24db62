package suggest_test

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

func ExampleNearest() {
	fmt.Println(suggest.Nearest("approvall", []string{"allow", "approval", "unasked"}))
	// Output: approval
}
