package repomap

import (
	"path"
	"strings"
)

// vendorFolders are folders, in lower case, that contain third-party code wherever they are.
// Together with vendorFiles they follow GitHub's linguist.
const vendorFolders = ` vendor vendors vendored _vendor _vendored node_modules bower_components jspm_packages site-packages
	third_party third-party thirdparty third_parties 3rd_party 3rd-party 3rdparty 3rd
	extern externs external externals godeps _workspace carthage pods subprojects sparkle.framework
	ckeditor tiny_mce tinymce mathjax codemirror ace-builds yui octicons cordova fontawesome font-awesome gradle-wrapper
	.yarn .bundle .mvn .venv venv virtualenv `

// outerVendorFolders contain third-party code at the top of a repository or of its source folder.
// Deeper in the tree they are often the repository's own code, unless everything in them has its
// own folder (see vendoredPath).
const outerVendorFolders = ` deps dependencies contrib dist `

// vendorFiles are files, in lower case, that are copied into many repositories.
const vendorFiles = ` configure config.guess config.sub aclocal.m4 libtool.m4 ltoptions.m4 ltsugar.m4 ltversion.m4 lt~obsolete.m4
	ltmain.sh install-sh depcomp missing compile mkinstalldirs test-driver cpplint.py gradlew gradlew.bat mvnw mvnw.cmd rebar rebar3 erlang.mk
	waf run.n normalize.css normalize.scss fabfile.py versioneer.py ez_setup.py distribute_setup.py html5shiv.js puphpet
	proguard.pro proguard-rules.pro .pnp.cjs .pnp.js .pnp.loader.mjs sqlite3.c sqlite3.h catch.hpp catch_amalgamated.hpp
	catch_amalgamated.cpp doctest.h uthash.h stb_image.h stb_image_write.h miniz.c miniz.h `

// vendorScripts are libraries for browsers. A file name consists of one of these names and a version
// (`lodash-4.17.js`); the names of jquery and its plugins need no version (`jquery.ui.js`).
const vendorScripts = ` jquery angular backbone bootstrap d3 dojo ember extjs foundation handlebars html5shiv knockout less lodash
	modernizr mootools prototype raphael react react-dom require scriptaculous select2 sinon socket.io three underscore vue yui zepto `

// vendoredPath reports whether the path of a file shows that the file is third-party code.
func vendoredPath(dir, base string) bool {
	depth := 0
	for rest := dir; rest != ""; {
		part, below, _ := strings.Cut(rest, "/")
		if inList(vendorFolders, part) || inList(outerVendorFolders, part) && (depth == 0 || strings.HasPrefix(part, "dep") && below != "") {
			return true
		}
		if depth > 0 || part != "src" && part != "lib" && part != "source" {
			depth++
		}
		rest = below
	}
	if inList(vendorFiles, base) {
		return true
	}
	switch path.Ext(base) {
	case ".js", ".css", ".mjs":
		stem := strings.TrimSuffix(base, path.Ext(base))
		library := strings.TrimRight(stem, "0123456789.-_v")
		if library == "" {
			return false
		}
		name, _, plugin := strings.Cut(library, ".")
		return inList(vendorScripts, library) && library != stem ||
			plugin && name == "jquery" || name == "jquery"
	}
	return false
}
