#!/usr/bin/env bash
# fuzz_smoke.sh BUILD: every fuzz target of that build for OCTET_FUZZ_SECONDS (default 5), starting from its seeds.
set -euo pipefail
fuzz=$1/tests/fuzz
corpus=$(mktemp -d)
trap 'rm -rf "$corpus"' EXIT
"$fuzz/write_seeds" "$corpus"
count=0
for target in "$fuzz"/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=$(basename "$target")
  seeds=$corpus/${name#fuzz_}
  mkdir -p "$seeds"
  echo "-- $name"
  "$target" -max_total_time="${OCTET_FUZZ_SECONDS:-5}" -timeout=10 -rss_limit_mb=3000 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$1/" "$seeds" 2>"$1/$name.log" || { tail -n 40 "$1/$name.log"; exit 1; }
  grep -E "number_of_executed_units" "$1/$name.log" || true
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "fuzz_smoke.sh: no fuzz target in $fuzz" >&2; exit 1; }
