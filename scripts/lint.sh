#!/usr/bin/env bash
# lint.sh [FILE...]: clang-tidy with .clang-tidy over the given source files, or all of them. Warnings are errors.
set -euo pipefail
cd "$(dirname "$0")/.."
[ -f build/release/compile_commands.json ] || cmake --preset release -DOCTET_BUILD_TESTS=ON >/dev/null
[ $# -gt 0 ] || mapfile -t files < <(git ls-files 'src/*.cpp' 'tests/*.cpp')
printf '%s\n' "${files[@]:-$@}" | xargs -P "$(nproc)" -n 4 clang-tidy -p build/release --quiet
