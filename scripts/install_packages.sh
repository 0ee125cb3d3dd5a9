#!/usr/bin/env bash
# install_packages.sh GROUP...: installs the Debian packages of these groups (packages.txt) that are missing.
# Says which; uses sudo only when not root; does nothing when all are there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

wanted=()
while read -r name groups; do
  case "$name" in '' | '#'*) continue ;; esac
  for group in "$@"; do
    case " $groups " in *" $group "*) wanted+=("$name") ;; esac
  done
done <"$here/packages.txt"

missing=()
for name in "${wanted[@]}"; do
  state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$name")
done
# Node.js may come from elsewhere, so look for the commands instead of the packages.
case " $* " in
  *" test "*)
    command -v node >/dev/null || missing+=(nodejs)
    command -v npm >/dev/null || missing+=(npm)
    ;;
esac

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if ! command -v apt-get >/dev/null; then
  echo "These packages are needed and this is not a Debian system; install their counterparts: ${missing[*]}" >&2
  exit 1
fi
echo "Installing missing packages: ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
