// Greedy continuations by an independent engine: the native addon of the npm package @node-llama-cpp/linux-x64,
// driven directly (its JavaScript wrapper is not needed). Reads prompts as token ids, so that nothing but the
// forward pass and the file is compared.
//
//   node independent_engine.mjs MODEL.gguf < requests.jsonl > continuations.jsonl
//
// A request is {"prompt_ids": [...], "tokens": N, "stop_ids": [...]}; the answer is {"ids": [...]}, the stop id included.
// A request {"prompt_ids": [...], "ids": [...]} asks about a text that is known: the answer is {"leads": [...]}, for each
// id by how much its logit leads the best of all others there (below 0: another one is best).
import {createRequire} from "node:module";
import path from "node:path";
import readline from "node:readline";

const require = createRequire(import.meta.url);
const binaries = path.join(path.dirname(require.resolve("@node-llama-cpp/linux-x64")), "..", "bins", "linux-x64");

const kLogErrors = 2;

async function open_model(file) {
  const addon = require(path.join(binaries, "llama-addon.node"));
  addon.setLogger((level, message) => {
    if (level === kLogErrors) {
      process.stderr.write(message);
    }
  });
  addon.setLoggerLogLevel(kLogErrors);
  addon.loadBackends();
  addon.loadBackends(binaries);
  await addon.init();
  const model = new addon.AddonModel(file, {addonExports: addon, gpuLayers: 0, useMmap: true});
  if (!(await model.init())) {
    throw new Error(`the independent engine could not load ${file}`);
  }
  return {addon, model};
}

async function continue_greedily({addon, model}, request) {
  const limit = request.prompt_ids.length + request.tokens;
  const context = new addon.AddonContext(model, {
    contextSize: limit, batchSize: limit, sequences: 1, threads: 1, flashAttention: false,
  });
  if (!(await context.init())) {
    throw new Error("the independent engine could not create a context");
  }
  const sampler = new addon.AddonSampler(model);
  sampler.applyConfig({temperature: 0});
  const ids = [];
  let position = 0;
  let pending = request.prompt_ids;
  while (ids.length < request.tokens) {
    context.initBatch(pending.length);
    const [row] = context.addToBatch(0, position, Uint32Array.from(pending), Uint32Array.of(pending.length - 1));
    await context.decodeBatch();
    const token = await context.sampleToken(row, sampler);
    position += pending.length;
    pending = [token];
    ids.push(token);
    if (request.stop_ids.includes(token)) {
      break;
    }
  }
  sampler.dispose();
  await context.dispose();
  return ids;
}

/** The logit of `id` less the best of the others: [id, probability, id, probability, ...] hold all of them. */
function lead_of(id, probabilities) {
  let own = 0;
  let best = 0;
  for (let i = 0; i < probabilities.length; i += 2) {
    if (probabilities[i] === id) {
      own = probabilities[i + 1];
    } else {
      best = Math.max(best, probabilities[i + 1]);
    }
  }
  return Math.log(own) - Math.log(best);
}

async function measure_leads({addon, model}, request) {
  const tokens = [...request.prompt_ids, ...request.ids.slice(0, -1)];
  const context = new addon.AddonContext(model, {
    contextSize: tokens.length, batchSize: tokens.length, sequences: 1, threads: 1, flashAttention: false,
  });
  if (!(await context.init())) {
    throw new Error("the independent engine could not create a context");
  }
  const sampler = new addon.AddonSampler(model);
  sampler.applyConfig({temperature: 0});
  context.initBatch(tokens.length);
  const wanted = request.ids.map((_, i) => request.prompt_ids.length - 1 + i);
  const rows = context.addToBatch(0, 0, Uint32Array.from(tokens), Uint32Array.from(wanted));
  await context.decodeBatch();
  const leads = [];
  for (const [i, row] of rows.entries()) {
    const [, probabilities] = await context.sampleToken(row, sampler, true, false);
    leads.push(lead_of(request.ids[i], probabilities));
  }
  sampler.dispose();
  await context.dispose();
  return leads;
}

const engine = await open_model(process.argv[2]);
for await (const line of readline.createInterface({input: process.stdin})) {
  if (line.trim() !== "") {
    const request = JSON.parse(line);
    const answer = "ids" in request ? {leads: await measure_leads(engine, request)}
      : {ids: await continue_greedily(engine, request)};
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}
await engine.model.dispose();
