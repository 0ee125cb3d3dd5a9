#!/usr/bin/env bash
# run_tests.sh [STAGE...]: the test suite in stages; without arguments format, fuzz, release and dev.
#   format    every source file is as clang-format writes it
#   fuzz      every libFuzzer target for OCTET_FUZZ_SECONDS (default 5) on its corpus
#   aarch64   cross build, core tests under qemu-user
#   release   Release build, every test
#   dev       the same under AddressSanitizer, the product also under UndefinedBehaviorSanitizer
#   tsan      the tests with threads under ThreadSanitizer
# Stops at the first stage that fails. ctest's summary comes last.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}

build() { # PRESET TARGET [CMAKE OPTION...]
  local preset=$1 target=$2
  shift 2
  cmake --preset "$preset" "$@" >"build/$preset.configure.log" 2>&1 || { cat "build/$preset.configure.log"; return 1; }
  cmake --build --preset "$preset" -j "$jobs" --target "$target" -- --quiet
}

run_ctest() { # PRESET [CTEST OPTION...]
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure -j "$jobs" --no-tests=error "$@"
}

train_option() { # octet-train is built where libtorch is
  find /usr/lib /usr/local/lib -name TorchConfig.cmake -print -quit 2>/dev/null | grep -q . && echo ON || echo OFF
}

differential_packages() { # what npm installed last is remembered in build/
  command -v npm >/dev/null || return 0
  local folder=tests/differential
  if [ ! -d $folder/node_modules ] || ! cmp -s $folder/package-lock.json build/npm.installed; then
    (cd $folder && npm ci --no-audit --no-fund --loglevel=error)
    cp $folder/package-lock.json build/npm.installed
  fi
}

web_page() { # its own tests, then the file that the next build puts into octet
  command -v npm >/dev/null || return 0
  if [ ! -d webui/node_modules ] || ! cmp -s webui/package-lock.json build/webui.installed; then
    (cd webui && npm ci --no-audit --no-fund --loglevel=error)
    cp webui/package-lock.json build/webui.installed
  fi
  (cd webui && npm test --silent && npm run build --silent)
}

stage() {
  echo "== $1"
  case "$1" in
    format) git ls-files '*.h' '*.cpp' | xargs clang-format --dry-run --Werror ;;
    fuzz)
      build fuzz fuzz_targets
      scripts/fuzz_smoke.sh build/fuzz
      ;;
    aarch64)
      scripts/aarch64_sysroot.sh
      build aarch64 all
      run_ctest aarch64 -L core
      ;;
    release)
      differential_packages
      web_page
      build release all -DOCTET_BUILD_TESTS=ON -DOCTET_BUILD_TRAIN="$(train_option)"
      OCTET_TEST_COMPLETE=1 run_ctest release
      ;;
    dev)
      build dev all
      run_ctest dev
      ;;
    tsan)
      build tsan all
      run_ctest tsan -L core
      ;;
    *)
      echo "run_tests.sh: unknown stage '$1'; one of: format fuzz aarch64 release dev tsan" >&2
      return 2
      ;;
  esac
}

mkdir -p build
[ $# -gt 0 ] || set -- format fuzz release dev
for name in "$@"; do
  stage "$name"
done
