#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# abi.sh COMMIT: fails if libraries of robots have another layout than at that commit under the same digest, by which
# loops recognise them. It needs abidiff, a compiler and the libraries of eom_dynamics.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/base"
git archive "$1" | tar x -C "$folder/base"
export EOM_DYNAMICS_CFLAGS=-g EOM_DYNAMICS_CACHE="$folder/cache"
for name in base head; do
  source=$PWD
  test $name = head || source=$folder/base
  (cd "$source" && python3 -m eom_dynamics.tools.cli.main codegen planar_2r --language loop -o "$folder/$name.so")
done
if abidiff "$folder/base.so" "$folder/head.so"; then
  exit 0
fi
digest() { python3 -c "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).eom_robot_abi())" "$folder/$1.so"; }
if test "$(digest base)" = "$(digest head)"; then
  echo "the layout has changed, and its digest has not: see loop_headers in eom_dynamics/control/headers.py" >&2
  exit 1
fi
