package template_test

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/template"
)

func ExampleText() {
	text, err := template.Text("{% if name %}Hello {{ name }}.{% else %}Hello.{% endif %}", template.Vars{"name": "Ada"})
	fmt.Println(text, err)
	// Output: Hello Ada. <nil>
}
