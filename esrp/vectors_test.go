package esrp

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
)

// vectors are inputs written for eca, with the results of the reference program.
type vectors struct {
	Raw []struct {
		Name, Input, Canonical, SHA256, Error string
	}
	Typed []struct {
		Name, Kind, Input, Validate string
		PayloadHash                 string `json:"payload_hash"`
		PayloadHashError            string `json:"payload_hash_error"`
		Canonical                   string `json:"canonical_typed"`
		CanonicalError              string `json:"canonical_typed_error"`
		SHA256                      string `json:"sha256_typed"`
		DecodeError                 string `json:"decode_error"`
	}
	Golden []struct {
		Name        string
		SHA256Typed string `json:"sha256_typed"`
		SHA256Raw   string `json:"sha256_raw"`
		PayloadHash string `json:"payload_hash"`
		Len         int    `json:"canonical_len"`
	}
}

func readVectors(t testing.TB) vectors {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Raw) != 46 || len(v.Typed) != 83 || len(v.Golden) != 4 {
		t.Fatalf("%d raw, %d typed and %d golden vectors", len(v.Raw), len(v.Typed), len(v.Golden))
	}
	return v
}

func TestRawVectors(t *testing.T) {
	for _, v := range readVectors(t).Raw {
		t.Run(v.Name, func(t *testing.T) {
			got, err := Canonical([]byte(v.Input))
			var syntax *SyntaxError
			switch {
			case v.Error == "float_not_allowed":
				if !errors.Is(err, ErrFloat) {
					t.Fatalf("got %s, %v; want %v", got, err, ErrFloat)
				}
			case v.Error != "":
				if !errors.As(err, &syntax) {
					t.Fatalf("got %s, %v; want a syntax error", got, err)
				}
			case err != nil:
				t.Fatal(err)
			case string(got) != v.Canonical || HashBytes(got) != v.SHA256:
				t.Fatalf("got  %s\nwant %s", got, v.Canonical)
			}
		})
	}
}

// The intentional differences from the reference, where eca is stricter (esrp.md 1.5, 2).
var (
	notDecoded = []string{"57_seq_form"}
	notValid   = []string{"45_version_01_0", "46_version_plus"}
)

func TestTypedVectors(t *testing.T) {
	for _, v := range readVectors(t).Typed {
		t.Run(v.Name, func(t *testing.T) {
			record, payload, err := decode(v.Kind, v.Input)
			if v.DecodeError != "" || slices.Contains(notDecoded, v.Name) {
				var wrong *DecodeError
				if !errors.As(err, &wrong) {
					t.Fatalf("got %v, want a decode error like %q", err, v.DecodeError)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := record.Validate(); (err == nil) != (v.Validate == "ok" && !slices.Contains(notValid, v.Name)) {
				t.Errorf("valid: %v, want %s", err, v.Validate)
			}
			got, err := record.Value().Canonical()
			if v.CanonicalError != "" {
				if !errors.Is(err, ErrFloat) {
					t.Errorf("got %s, %v; want %v", got, err, ErrFloat)
				}
			} else if err != nil || string(got) != v.Canonical || HashBytes(got) != v.SHA256 {
				t.Errorf("got  %s, %v\nwant %s", got, err, v.Canonical)
			}
			if v.Kind != "request" {
				return
			}
			hash, err := payload()
			if v.PayloadHashError != "" {
				if !errors.Is(err, ErrFloat) {
					t.Errorf("payload hash %s, %v; want %v", hash, err, ErrFloat)
				}
			} else if err != nil || hash != v.PayloadHash {
				t.Errorf("payload hash %s, %v; want %s", hash, err, v.PayloadHash)
			}
		})
	}
}

type record interface {
	Value() Value
	Validate() error
	ValidateStrictly() error
}

func decode(kind, doc string) (record, func() (string, error), error) {
	if kind == "request" {
		r, err := DecodeRequest([]byte(doc))
		return r, r.HashPayload, err
	}
	r, err := DecodeResponse([]byte(doc))
	return r, nil, err
}

// TestGolden reads the reference's four requests, retyped, and expects its hashes.
func TestGolden(t *testing.T) {
	for _, v := range readVectors(t).Golden {
		t.Run(v.Name, func(t *testing.T) {
			doc, err := os.ReadFile("testdata/golden/" + v.Name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			r, err := DecodeRequest(doc)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.ValidateStrictly(); err != nil {
				t.Error(err)
			}
			typed, err := r.Value().Canonical()
			if err != nil || len(typed) != v.Len || HashBytes(typed) != v.SHA256Typed {
				t.Errorf("typed: %d bytes, %s, %v; want %d, %s", len(typed), HashBytes(typed), err, v.Len, v.SHA256Typed)
			}
			if raw, err := Canonical(doc); err != nil || HashBytes(raw) != v.SHA256Raw {
				t.Errorf("raw %s, %v; want %s", HashBytes(raw), err, v.SHA256Raw)
			}
			if hash, err := r.HashPayload(); err != nil || hash != v.PayloadHash {
				t.Errorf("payload %s, %v; want %s", hash, err, v.PayloadHash)
			}
			sealed, err := r.Sealed()
			r.PayloadHash = &v.PayloadHash
			want, _ := r.Value().Canonical()
			if got, err2 := sealed.Canonical(); err != nil || err2 != nil || string(got) != string(want) {
				t.Errorf("sealed %s, %v\nwant %s", got, err, want)
			}
		})
	}
}
