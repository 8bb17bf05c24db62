package mcp

import (
	"encoding/json"
	"errors"
	"testing"
)

// A message is a request, a notification or an answer, and can be re-encoded without a change.
func FuzzEnvelopes(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `{"id":1,"result":{}}`, `{"id":"1","error":{"code":-32601,"message":"no"}}`, `{"id":null,"error":{"code":1,"message":""}}`,
		`{"method":"ping","id":7}`, `{"method":"x","params":[1]}`, `[{"method":"x"},{"id":1,"result":null}]`, `[[]]`, `{"id":1,"error":"text"}`, `{"jsonrpc":"2.0","id":{},"result":1}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := readEnvelopes(data)
		if err != nil {
			if !errors.Is(err, errNoMessage) || list != nil {
				t.Fatalf("%v, %v", list, err)
			}
			return
		}
		for _, e := range list {
			kinds := 0
			for _, is := range []bool{e.isRequest(), e.isNotification(), e.Method == "" && (e.Result != nil || e.Error != nil)} {
				if is {
					kinds++
				}
			}
			if kinds != 1 {
				t.Fatalf("%+v is %d things", e, kinds)
			}
			raw, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			again, err := readEnvelopes(raw)
			if err != nil || len(again) != 1 || again[0].key() != e.key() || again[0].Method != e.Method {
				t.Fatalf("%s came back as %+v, %v", raw, again, err)
			}
		}
	})
}
