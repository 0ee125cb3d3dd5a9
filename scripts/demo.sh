#!/usr/bin/env bash
# demo.sh OCTET: a short conversation with the shipped pair, drafted, then measured against plain decoding.
set -euo pipefail
octet=$1
models=$(cd "$(dirname "$0")/.." && pwd)/models/bolt-tiny
marks=text
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
  marks=color
fi
printf '%s\n' \
  "Turn on the light in the kitchen and set it to 40 percent." \
  "What is the capital of France?" \
  "Tell me a short story about a fox." |
  "$octet" chat -m "$models/bolt-tiny-q8_0.gguf" -md "$models/bolt-tiny-dflash-q8_0.gguf" \
    --temp 0 -n 200 --no-think --compare 5 --marks "$marks" 2>&1
