#!/usr/bin/env bash
# Builds a release for linux/amd64 twice, in two clones at different paths, and compares the files.
# Then it installs each kind of package for which this machine has an installer, without changing the
# system, and runs the README's demo. It prints NOT TESTED for each package that it cannot install.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

go build -C release -o "$work/release" .
for clone in first other/second; do
  git clone --quiet --shared . "$work/$clone"
  (cd "$work/$clone" && "$work/release" -platforms linux/amd64 -out "$work/${clone##*/}-dist")
done
diff -r "$work/first-dist" "$work/second-dist"
cd "$work/first-dist"
sha256sum --check --quiet SHA256SUMS ./*.zip.sha256

# demo PROGRAM runs the README's demo and checks that the answer shows source code.
demo() {
  local answer
  answer=$(cd "$work/first" && env -i PATH="$PATH" HOME="$(mktemp -d "$work/home.XXXX")" "$1" exec "Where does this program start? Show me." </dev/null 2>&1)
  case "$answer" in
  *"package main"*) echo "works: $1" ;;
  *) echo "the demo of $1 failed: $answer"; exit 1 ;;
  esac
}

mkdir "$work/tar" && tar -xzf eca-*.tar.gz -C "$work/tar"
demo "$(echo "$work"/tar/*/eca)"
python3 -m zipfile -e eca-native-static-linux-amd64.zip "$work/zip" && chmod +x "$work/zip/eca"
demo "$work/zip/eca"
if command -v dpkg-deb >/dev/null; then
  dpkg-deb --extract ./*.deb "$work/deb"
  demo "$work/deb/usr/bin/eca"
else
  echo "NOT TESTED: .deb needs dpkg-deb"
fi
if command -v rpm >/dev/null; then
  rpm --install --nosignature --nodeps --root "$work/rpm" ./*.rpm 2>/dev/null
  demo "$work/rpm/usr/bin/eca"
else
  echo "NOT TESTED: .rpm needs rpm"
fi
if python3 -c 'import venv, ensurepip' 2>/dev/null; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index ./*.whl
  demo "$work/venv/bin/eca"
else
  echo "NOT TESTED: the wheel needs Python with venv"
fi
if command -v npm >/dev/null; then
  mkdir "$work/npm"
  (cd "$work/npm" && npm install --silent --offline --no-audit --no-fund --prefix . ../first-dist/npm-*.tgz)
  demo "$work/npm/node_modules/.bin/eca"
else
  echo "NOT TESTED: the npm packages need npm"
fi
