#!/bin/sh
# Runs while an image is built: installs into a folder that becomes a layer at the same place, compiled for a root file
# system that is read-only later. Each layer is made apart from the others, so that a change of ours replaces a small one.
#
#   install.sh locked LOCK FOLDER     what a lock file pins, and nothing without its hash
#   install.sh own NAMES FOLDER       our own wheels
#   install.sh check FOLDER...        whether the layers together lack nothing
set -eu
target=/opt/waybill
step=$1
shift
site() { set -- "$1"$target/lib/python3*/site-packages; echo "$1"; }
pip() { /opt/tools/bin/python -m pip --python $target/bin/python "$@"; }
# Nobody writes into an image, so compiled files need no look at their source.
compile() { $target/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash -s "$1" "$1"; }

case $step in
  locked)
    pip install --quiet --no-warn-script-location --no-deps --require-hashes --only-binary :all: --no-compile --root "$2" -r "$1"
    rm -rf "$2$target/bin" # nobody runs the programs of others
    compile "$2" ;;
  own)
    # shellcheck disable=SC2046 # names are words
    pip install --quiet --no-warn-script-location --no-deps --no-index --find-links /wheels --no-compile --root "$2" $(cat "$1")
    compile "$2" ;;
  check)
    for folder in "$@"; do PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$(site "$folder"); done
    export PYTHONPATH
    pip check ;;
esac
