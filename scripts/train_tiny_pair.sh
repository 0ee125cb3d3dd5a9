#!/usr/bin/env bash
# train_tiny_pair.sh FOLDER: makes a pair like models/bolt-tiny from nothing: dialogues, a target, its own texts, a drafter,
# and the GGUF files. Takes up what an earlier run in FOLDER left. Programs come from build/release.
set -euo pipefail
folder=$(realpath -m -- "${1:?usage: train_tiny_pair.sh FOLDER}")
cd "$(dirname "$0")/.."
train=build/release/src/octet/octet-train
octet=build/release/src/octet/octet
like=models/bolt-tiny/bolt-tiny-q8_0.gguf
mkdir -p "$folder"

# What the pair is judged with is not in what it learns from: the dialogues that validation sees, and those of the tests.
[ -f "$folder/judged.jsonl" ] || $train corpus -o "$folder/judged.jsonl" --dialogues 300 --seed 1
[ -f "$folder/dialogues.jsonl" ] || $train corpus -o "$folder/dialogues.jsonl" --dialogues "${DIALOGUES:-40000}" \
  --withhold "$folder/judged.jsonl" --withhold tests/golden/held_out_dialogues.json --withhold tests/golden/held_out_sums.json

resume() { [ -f "$1" ] && echo --resume || true; }

if [ ! -d "$folder/target" ]; then
  $train target --like $like --data "$folder/dialogues.jsonl" --validation "$folder/judged.jsonl" --epochs "${TARGET_EPOCHS:-1.5}" \
    -o "$folder/target" --state "$folder/target.state" $(resume "$folder/target.state") --html "$folder/target.html"
fi
[ -f "$folder/samples.jsonl" ] ||
  $train samples -m "$folder/target" --data "$folder/dialogues.jsonl" -o "$folder/samples.jsonl" --count "${SAMPLES:-4000}"
if [ ! -d "$folder/drafter" ]; then
  $train drafter -m "$folder/target" --taps 1,2,3,4 --data "$folder/samples.jsonl" --validation "$folder/judged.jsonl" \
    --epochs "${DRAFTER_EPOCHS:-3}" -o "$folder/drafter" --state "$folder/drafter.state" $(resume "$folder/drafter.state") \
    --html "$folder/drafter.html"
fi
$octet quantize "$folder/target" "$folder/bolt-tiny-q8_0.gguf" --type Q8_0 --force
$octet quantize "$folder/drafter" "$folder/bolt-tiny-dflash-q8_0.gguf" --type Q8_0 --force
$octet inspect "$folder/bolt-tiny-q8_0.gguf" "$folder/bolt-tiny-dflash-q8_0.gguf"
