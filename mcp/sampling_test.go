package mcp

import (
	"encoding/json"
	"strings"
	"testing"
)

// A server's request to a model is accepted only if the user can judge it.
func TestSampleRequest(t *testing.T) {
	message := func(role, content string) string {
		return `{"maxTokens":5,"messages":[{"role":"` + role + `","content":` + content + `}]}`
	}
	text := func(s string) string { return `{"type":"text","text":"` + s + `"}` }
	for params, why := range map[string]string{
		message("user", text("x")):                                                "",
		message("user", "["+text("x")+","+text("y")+"]"):                          "",
		message("assistant", text("x")):                                           "must be the user's",
		message("user", "[]"):                                                     "is empty",
		message("user", `"x"`):                                                    "cannot read",
		message("user", text(strings.Repeat("x", maxSampleText+1))):               "more than 256 KiB",
		message("user", `{"type":"image","mimeType":"image/png","data":"?"}`):     "an image is too large",
		message("user", `{"type":"image","mimeType":"image/svg","data":"AAAA"}`):  "an image is too large",
		message("assistant", `{"type":"image","mimeType":"image/png","data":""}`): "cannot have images",
		`{"maxTokens":0,"messages":[]}`:                                           "maxTokens",
	} {
		var p sampleParams
		if err := json.Unmarshal([]byte(params), &p); err != nil {
			t.Fatal(err)
		}
		_, err := p.request()
		if why == "" && err != nil || why != "" && (err == nil || !strings.Contains(err.Error(), why)) {
			t.Errorf("%.200s: %v", params, err)
		}
	}
}
