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
  "What is the capital of Finland?" \
  "Give me a Python function that computes the factorial of a number." \
  "I want to hear a story with a mouse." |
  "$octet" chat -m "$models/bolt-tiny-q8_0.gguf" -md "$models/bolt-tiny-dflash-q8_0.gguf" \
    --system "You are a helpful assistant." --no-think --temp 0 -n 200 \
    --draft-policy fixed --compare 5 --marks "$marks" 2>&1
