#!/usr/bin/env bash
# lint.sh [FILE...]: clang-tidy with .clang-tidy over the given source files, or all of them. Warnings are errors.
# Sources of another machine (the Arm kernels on x86-64) are not part of this build; they are named and skipped, as are
# those with libtorch's headers, which clang 14 cannot read as C++20.
set -euo pipefail
cd "$(dirname "$0")/.."
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files 'src/*.cpp' 'tests/*.cpp')

database() { # PRESET: what clang-tidy reads, without the flags that only GCC knows
  [ -f "build/$1/compile_commands.json" ] || cmake --preset "$1" >/dev/null
  mkdir -p "build/lint/$1"
  sed -E -e 's/ -fno-gnu-unique//g; s/ -Wno-(maybe-uninitialized|restrict|stringop-[a-z]+)//g; s/ -Winvalid-pch -include [^ ]*cmake_pch.hxx//g' "build/$1/compile_commands.json" >"build/lint/$1/compile_commands.json"
}

needs_libtorch() { # FILE
  [[ $1 =~ ^src/octet/train/[a-z_]*\.cpp$|^tests/.*/train_ ]]
}

check() { # PRESET FILE...
  local preset=$1 file known=()
  shift
  for file in "$@"; do
    if ! needs_libtorch "$file" && grep -qF "/$file\"" "build/lint/$preset/compile_commands.json"; then known+=("$file"); else echo "lint: skipped $file"; fi
  done
  [ ${#known[@]} -eq 0 ] ||
    printf '%s\n' "${known[@]}" | xargs -P "${JOBS:-$(nproc)}" -n 4 clang-tidy -p "build/lint/$preset" --quiet
}

database release
database fuzz
mapfile -t fuzzers < <(printf '%s\n' "${files[@]}" | grep '^tests/fuzz/' || true)
mapfile -t others < <(printf '%s\n' "${files[@]}" | grep -v '^tests/fuzz/' || true)
status=0
check fuzz "${fuzzers[@]}" || status=1
check release "${others[@]}" || status=1
exit $status
