// read_safetensors.mjs FOLDER: reads a Hugging Face folder by the format's description alone and prints its tensors as JSON:
// {name: {dtype, shape, file, digest}}, digests being FNV-1a of the bytes. Fails on whatever the format forbids, an index that says
// something else than the files, and quantization configs other than the tensors call for.
import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const bytesOf = { F32: 4, F16: 2, BF16: 2, U8: 1, F8_E4M3: 1 };

function digest(bytes) {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

function readFile(folder, file, tensors) {
  const content = readFileSync(join(folder, file));
  const headerBytes = Number(content.readBigUInt64LE(0));
  assert.equal((8 + headerBytes) % 8, 0, "data begin at a multiple of 8");
  const header = JSON.parse(content.subarray(8, 8 + headerBytes).toString("utf8"));
  assert.deepEqual(header.__metadata__, { format: "pt" });
  delete header.__metadata__;
  const data = content.subarray(8 + headerBytes);
  let end = 0;
  const entries = Object.entries(header).sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0]);
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of entries) {
    const count = shape.reduce((product, size) => product * size, 1);
    assert.equal(from, end, `${name} begins where the last one ended`);
    assert.equal(to - from, count * bytesOf[dtype], `${name} is as long as its shape says`);
    assert.equal(from % bytesOf[dtype], 0, `${name} is aligned to its elements`);
    assert.ok(!(name in tensors), `${name} is there once`);
    tensors[name] = { dtype, shape, file, digest: digest(data.subarray(from, to)) };
    end = to;
  }
  assert.equal(end, data.length, "nothing stands behind the last tensor");
  return end;
}

function checkIndex(folder, tensors, totalBytes) {
  const path = join(folder, "model.safetensors.index.json");
  const files = new Set(Object.values(tensors).map(({ file }) => file));
  assert.equal(existsSync(path), files.size > 1);
  if (files.size === 1) return;
  const index = JSON.parse(readFileSync(path, "utf8"));
  assert.equal(index.metadata.total_size, totalBytes);
  assert.deepEqual(index.weight_map, Object.fromEntries(Object.entries(tensors).map(([name, { file }]) => [name, file])));
}

// Both configs, from nothing but the names and types of the tensors.
function expectedQuantization(tensors) {
  const scaled = Object.keys(tensors).filter((name) => name.endsWith(".weight_scale_2")).map((name) => name.slice(0, -".weight_scale_2".length));
  if (scaled.length === 0) return undefined;
  const plain = Object.keys(tensors)
    .filter((name) => name.endsWith(".weight") && tensors[name].shape.length === 2 && tensors[name].dtype !== "U8")
    .map((name) => name.slice(0, -".weight".length))
    .sort();
  const w4a4 = scaled.filter((module) => `${module}.input_scale` in tensors).sort();
  const w4a16 = scaled.filter((module) => !(`${module}.input_scale` in tensors)).sort();
  const mixed = w4a4.length > 0 && w4a16.length > 0;
  const algorithm = mixed ? "MIXED_PRECISION" : w4a4.length > 0 ? "NVFP4" : "W4A16_NVFP4";
  const numbers = { num_bits: 4, type: "float", group_size: 16, dynamic: false };
  const layers = Object.fromEntries(scaled.map((module) => [module, { quant_algo: w4a4.includes(module) ? "NVFP4" : "W4A16_NVFP4", group_size: 16 }]));
  const producer = { name: "octet", version: "1" };
  const calibrated = { weights: numbers, input_activations: numbers };
  const groups = mixed
    ? { group_0: { ...calibrated, targets: w4a4 }, group_1: { weights: numbers, targets: w4a16 } }
    : { group_0: { ...(w4a4.length > 0 ? calibrated : { weights: numbers }), targets: ["Linear"] } };
  return {
    flat: { quant_method: "modelopt", quant_algo: algorithm, config_groups: groups, ...(mixed ? { quantized_layers: layers } : {}), ignore: plain, producer },
    nested: {
      producer,
      quantization: { quant_algo: algorithm, kv_cache_quant_algo: null, ...(mixed ? { quantized_layers: layers } : { group_size: 16, exclude_modules: plain }) },
    },
  };
}

// Lists of names have no order of their own.
function sorted(value) {
  if (Array.isArray(value)) return [...value].sort();
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, sorted(member)]));
}

const folder = process.argv[2];
const tensors = {};
let totalBytes = 0;
for (const file of readdirSync(folder).filter((name) => name.endsWith(".safetensors"))) totalBytes += readFile(folder, file, tensors);
checkIndex(folder, tensors, totalBytes);
for (const [name, { dtype, shape }] of Object.entries(tensors)) {
  if (dtype !== "U8") continue;
  const module = name.slice(0, -".weight".length);
  assert.deepEqual(tensors[`${module}.weight_scale`].shape, [shape[0], shape[1] / 8], `${module}: a scale for 16 values, two in a byte`);
  assert.equal(tensors[`${module}.weight_scale`].dtype, "F8_E4M3");
  assert.deepEqual(tensors[`${module}.weight_scale_2`].shape, []);
  assert.equal(tensors[`${module}.weight_scale_2`].dtype, "F32");
}
const expected = expectedQuantization(tensors);
const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));
const nested = join(folder, "hf_quant_config.json");
assert.deepEqual(sorted(config.quantization_config), expected && sorted(expected.flat));
assert.deepEqual(existsSync(nested) ? sorted(JSON.parse(readFileSync(nested, "utf8"))) : undefined, expected && sorted(expected.nested));
console.log(JSON.stringify(tensors));
