package main

import (
	"bytes"
	"embed"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/template"

	"aead.dev/minisign"
)

//go:embed recipes
var recipeFiles embed.FS

// recipes writes the files from which Homebrew, Scoop, Arch Linux, Nix and Docker install the
// archives. The files refer to the archives of all platforms, so a release of some platforms has no
// recipes.
func (r *release) recipes(built []target) error {
	if len(built) < len(targets()) {
		fmt.Println("skipping recipes, which need all platforms")
		return nil
	}
	byPlatform := map[string]string{}
	for _, t := range built {
		byPlatform[t.os+"_"+t.arch] = r.sums[r.archiveName(t)]
	}
	data := map[string]any{
		"Version": r.version, "ArchVersion": strings.ReplaceAll(r.version, "-", "_"), "Homepage": homepage, "Summary": summary,
		"URL": homepage + "/releases/download/v" + r.version, "SHA256": byPlatform,
	}
	for _, name := range []string{"eca.rb", "eca.json", "PKGBUILD", "flake.nix", "Dockerfile"} {
		parsed, err := template.New("").Delims("<<", ">>").Option("missingkey=error").ParseFS(recipeFiles, "recipes/"+name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := parsed.ExecuteTemplate(&out, name, data); err != nil {
			return err
		}
		if err := r.write(name, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// sumsFile is the name of the list of checksums.
const sumsFile = "SHA256SUMS"

// checksums writes the checksums of all files and, if a key is given, their signature.
func (r *release) checksums(key, password string) error {
	var list bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&list, "%s  %s\n", r.sums[name], name)
	}
	if err := r.write(sumsFile, list.Bytes()); err != nil || key == "" {
		return err
	}
	signature, err := r.sign(list.Bytes(), key, password)
	if err != nil {
		return fmt.Errorf("cannot sign with %s: %w", key, err)
	}
	return r.write(sumsFile+".minisig", signature)
}

// sign makes a signature that minisign verifies.
func (r *release) sign(message []byte, key, password string) ([]byte, error) {
	raw, err := os.ReadFile(key)
	if err != nil {
		return nil, err
	}
	var private minisign.PrivateKey
	if minisign.IsEncrypted(raw) {
		private, err = minisign.DecryptKey(password, raw)
	} else {
		err = private.UnmarshalText(raw)
	}
	if err != nil {
		return nil, err
	}
	return minisign.SignWithComments(private, message, fmt.Sprintf("eca %s, commit %s", r.version, r.commit), "signature of eca "+r.version), nil
}
