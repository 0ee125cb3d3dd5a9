#!/usr/bin/env bash
# aarch64_sysroot.sh: unpacks the 64-bit Arm builds of the libraries that octet links into build/sysroot-aarch64.
# Installs nothing on the host: apt keeps its lists for that architecture below build/ as well.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=(libfmt-dev libfmt9 libsimdjson-dev libsimdjson14 libgtest-dev libgmock-dev libcli11-dev
  nlohmann-json3-dev libboost1.81-dev libssl-dev libssl3 prometheus-cpp-dev libprometheus-cpp-core1.0
  libedit-dev libedit2 libbsd0 libmd0 libtinfo6)
sysroot=$PWD/build/sysroot-aarch64
state=$PWD/build/apt-aarch64

stamp=$sysroot/.packages
if [ "$(cat "$stamp" 2>/dev/null || true)" = "${packages[*]}" ]; then
  exit 0
fi
rm -rf "$sysroot" "$state"
mkdir -p "$sysroot" "$state/lists/partial" "$state/cache/archives/partial" "$state/debs"
touch "$state/status"
apt=(apt-get -qq
  -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
  -o Dir::State::lists="$state/lists" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache")
echo "Fetching 64-bit Arm libraries: ${packages[*]}"
"${apt[@]}" update
(cd "$state/debs" && "${apt[@]}" download "${packages[@]}")
for package in "$state"/debs/*.deb; do
  dpkg-deb -x "$package" "$sysroot"
done
rm -rf "$state"
echo "${packages[*]}" >"$stamp"
