package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// npmScope is the npm scope of the packages.
const npmScope = "@seed-dec29ce4/"

func (t target) npmName() string { return "eca-" + t.npm[0] + "-" + t.npm[1] }

// npmPackage writes a package for npm.
func (r *release) npmPackage(name string, manifest map[string]any, files ...file) error {
	manifest["name"], manifest["version"], manifest["description"] = npmScope+name, r.version, summary
	manifest["license"], manifest["homepage"] = "Apache-2.0", homepage
	manifest["repository"] = map[string]string{"type": "git", "url": "git+" + homepage + ".git"}
	packageJSON, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	files = append(files, file{"package.json", 0o644, packageJSON}, file{"LICENSE", 0o644, licence})
	for i := range files {
		files[i].path = "package/" + files[i].path
	}
	body, err := tarArchive(files, r.time, false)
	if err != nil {
		return err
	}
	return r.write("npm-"+name+"-"+r.version+".tgz", body)
}

// npm writes the package with the program of one platform.
func (r *release) npm(b *build) error {
	return r.npmPackage(b.npmName(), map[string]any{"os": b.npm[:1], "cpu": b.npm[1:]},
		file{"bin/" + b.exe("eca"), 0o755, b.programs["eca"]}, file{"LICENSE-THIRD-PARTY.txt", 0o644, b.licences})
}

// npmWrapper writes the npm package that users install. It depends on the packages of all platforms,
// of which npm installs only the matching one.
func (r *release) npmWrapper(built []target) error {
	platforms := map[string]string{}
	for _, t := range built {
		platforms[npmScope+t.npmName()] = r.version
	}
	launcher, err := recipeFiles.ReadFile("recipes/launcher.js")
	if err != nil {
		return err
	}
	return r.npmPackage("eca", map[string]any{
		"bin": map[string]string{"eca": "launcher.js"}, "engines": map[string]string{"node": ">=18"}, "optionalDependencies": platforms,
	}, file{"launcher.js", 0o755, launcher})
}

// pythonVersion returns the version in the format of PEP 440.
func (r *release) pythonVersion() string {
	return strings.NewReplacer("-dev", ".dev0", "-alpha.", "a", "-beta.", "b", "-rc.", "rc").Replace(r.version)
}

// wheel writes the package with the program of one platform for PyPI.
func (r *release) wheel(b *build) error {
	version := r.pythonVersion()
	stem := "eca_daemon-" + version
	var tags strings.Builder
	for tag := range strings.SplitSeq(b.wheel, ".") {
		tags.WriteString("Tag: py3-none-" + tag + "\n")
	}
	files := []file{
		{stem + ".data/scripts/" + b.exe("eca"), 0o755, b.programs["eca"]},
		{stem + ".dist-info/METADATA", 0o644, fmt.Appendf(nil, "Metadata-Version: 2.1\nName: eca-daemon\nVersion: %s\nSummary: %s\nHome-page: %s\nLicense: Apache-2.0\nRequires-Python: >=3.8\n", version, summary, homepage)},
		{stem + ".dist-info/WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: eca-release\nRoot-Is-Purelib: false\n" + tags.String())},
		{stem + ".dist-info/licenses/LICENSE-THIRD-PARTY.txt", 0o644, b.licences},
	}
	var record strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.body)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.path, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.body))
	}
	record.WriteString(stem + ".dist-info/RECORD,,\n")
	body, err := zipArchive(append(files, file{stem + ".dist-info/RECORD", 0o644, []byte(record.String())}), r.time)
	if err != nil {
		return err
	}
	return r.write(stem+"-py3-none-"+b.wheel+".whl", body)
}
