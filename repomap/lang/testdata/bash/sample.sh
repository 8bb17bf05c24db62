#!/bin/bash
# function no() { }
set -euo pipefail
export PATH_TO="$HOME/x"
readonly LIMIT=10
usage() {
  cat <<EOF
nope() {
EOF
  echo "${x#prefix} $(grep "a" b) }"
}
function build-all {
  local x='function no() {'
  inner() { :; }
  case $x in a) echo ;; esac
}
function both() { echo $#; }
  indented () (
    true
  )
echo \"not() {
if [ ${#x} -gt 1 ]; then last() { :; }; fi
main() { usage "$@"; }
main "$@"

unbalanced() {
  echo "$(cut -d '(' -f 2 | tr -d \" )"
}

after_unbalanced() { :; }
