package redact_test

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/redact"
)

// Remove known secrets, and text that looks like one.
func ExampleRedactor_String() {
	r := redact.New("correct-horse-battery")
	fmt.Println(r.String("the password is correct-horse-battery"))
	// Output: the password is [REDACTED]
}
