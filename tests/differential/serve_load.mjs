// A rough crowd against a running server: readers that are slow or stop reading, clients that hang up or cancel,
// bodies that are none, deadlines, priorities, tools, schemas, conversations, drafts on and off, more requests than
// fit. Some replies are known from before and must come out the same. Afterwards everything must be at rest.
//   node serve_load.mjs http://127.0.0.1:PORT KEY [PID]
// With the server's PID its memory is watched; from 60 seconds on it must not grow.
// OCTET_LOAD_SECONDS (4), OCTET_LOAD_CLIENTS (16, from 60 seconds on 64), OCTET_LOAD_SEED
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { base, headers, get, post, key, ROBOT, TOOLS } from "./serve_client.mjs";

const pid = process.argv[4];
const { hostname, port } = new URL(base);
const SECONDS = Number(process.env.OCTET_LOAD_SECONDS ?? 4);
const CLIENTS = Number(process.env.OCTET_LOAD_CLIENTS ?? (SECONDS >= 60 ? 64 : 16));
const seed = Number(process.env.OCTET_LOAD_SEED ?? Date.now() % 1e6);
console.log(`seed ${seed}, ${CLIENTS} clients, ${SECONDS} s`);

let state = seed;
const random = () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const QUESTIONS = ["What is a river?", "Tell me a story about a fox.", "What is 12 plus 30?", "Do you sell bread?", "Hello!"];
const PERSON = {
  type: "object",
  properties: { name: { type: "string", maxLength: 12 }, age: { type: "integer" }, mood: { enum: ["good", "bad"] } },
  required: ["name", "age", "mood"],
};
const maybe = (share, fields) => (random() < share ? fields : {});
const user = (content) => ({ role: "user", content });

/** Any of the things that a request may ask for. */
function wish() {
  return pick([
    () => ({}),
    () => ({}),
    () => ({ messages: [ROBOT, user("Look to the left and nod.")], tools: TOOLS, tool_choice: pick(["auto", "required"]) }),
    () => ({ response_format: { type: "json_schema", json_schema: { name: "p", schema: PERSON } } }),
    () => ({ response_format: { type: "json_object" } }),
    () => ({ choice: ["yes", "no", "perhaps"] }),
    () => ({ regex: "[a-z ]{1,40}[.]" }),
    () => ({ stop: ["the", "."] }),
    () => ({ logprobs: true, top_logprobs: 3 }),
    () => ({ n: 2, max_tokens: 12 }),
    () => ({ presence_penalty: 1, frequency_penalty: 0.5, repetition_penalty: 1.2 }),
    () => ({ chat_template_kwargs: { enable_thinking: true }, thinking_token_budget: 1 + below(20) }),
    () => ({ reasoning_effort: pick(["none", "low"]) }),
  ])();
}

const body = (more = {}) => ({
  messages: [user(pick(QUESTIONS))],
  max_tokens: 10 + below(60),
  temperature: random() < 0.5 ? 0 : 1,
  ...maybe(0.3, { speculative: pick([{ enabled: false }, { max_length: 1 + below(7) }, { policy: "fixed" }]) }),
  ...maybe(0.2, { priority: below(5) - 2 }),
  ...maybe(0.1, { deadline_ms: 1 + below(400) }),
  ...maybe(0.1, { first_token_deadline_ms: 1 + below(200) }),
  ...maybe(0.05, { speech_deadline_ms: 1 + below(50) }),
  ...wish(),
  ...more,
});

const seen = new Map();
const count = (what) => seen.set(what, (seen.get(what) ?? 0) + 1);

/** A status that may be, and what belongs to it. */
async function check(reply, ...others) {
  count(reply.status);
  if (![200, 429, 503, ...others].includes(reply.status)) {
    assert.fail(`status ${reply.status}: ${reply.bodyUsed ? "" : await reply.text()}`);
  }
  if (reply.status === 429 || reply.status === 503) {
    assert.ok(Number(reply.headers.get("retry-after")) >= 1, "no Retry-After");
    await pause(20 + below(100));
  }
  return reply.status === 200;
}

function checkChoice(choice) {
  assert.ok(["stop", "length", "tool_calls"].includes(choice.finish_reason), choice.finish_reason);
  assert.ok(choice.finish_detail, "no finish_detail");
  for (const call of choice.message?.tool_calls ?? []) JSON.parse(call.function.arguments);
}

async function polite() {
  const reply = await post("/v1/chat/completions", body());
  if (await check(reply)) (await reply.json()).choices.forEach(checkChoice);
  else await reply.text();
}

/** What a stream brought, put together by choice. Its form is checked. */
function assembled(text) {
  assert.ok(text.endsWith("data: [DONE]\n\n"), `a stream ended with ${JSON.stringify(text.slice(-80))}`);
  const choices = new Map();
  for (const event of text.split("\n\n")) {
    if (!event.startsWith("data: ") || event === "data: [DONE]") continue;
    const chunk = JSON.parse(event.slice(6));
    assert.ok(!chunk.error, JSON.stringify(chunk.error));
    for (const { index, delta, finish_reason, finish_detail } of chunk.choices) {
      const choice = choices.get(index) ?? { message: { content: "", tool_calls: [] } };
      choices.set(index, choice);
      assert.ok(!choice.finish_reason, "something came behind the finish");
      choice.message.content += delta.content ?? "";
      if (delta.reasoning_content) choice.message.reasoning_content = (choice.message.reasoning_content ?? "") + delta.reasoning_content;
      for (const call of delta.tool_calls ?? []) {
        const known = (choice.message.tool_calls[call.index] ??= { function: { name: "", arguments: "" } });
        known.function.name += call.function?.name ?? "";
        known.function.arguments += call.function?.arguments ?? "";
      }
      if (finish_reason) Object.assign(choice, { finish_reason, finish_detail });
    }
  }
  for (const choice of choices.values()) checkChoice(choice);
  return [...choices.values()];
}

/** Reads a stream to its end, at its own pace, or leaves in the middle. */
async function streaming() {
  const abort = new AbortController();
  const leave = random() < 0.4;
  const slow = random() < 0.3;
  try {
    const reply = await fetch(`${base}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: JSON.stringify(body({ stream: true, stream_options: { include_usage: true } })),
      signal: abort.signal,
    });
    const served = await check(reply);
    let text = "";
    let chunks = 0;
    const decoder = new TextDecoder();
    const reader = reply.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += decoder.decode(part.value, { stream: true });
      if (leave && ++chunks > random() * 6) {
        count("hung up");
        abort.abort();
        return;
      }
      if (slow) await pause(below(30));
    }
    if (served) assembled(text);
  } catch (error) {
    if (error.name !== "AbortError") throw error;
  }
}

/** Cancels by id, or ends the thinking; the stream must still end as streams do. */
async function cancelling() {
  const request_id = `load-${below(1e9)}`;
  const asked = post("/v1/chat/completions", body({ request_id, stream: true, ignore_eos: true, max_tokens: 300 }));
  await pause(below(150));
  for (const verb of pick([["cancel"], ["end_thinking", "cancel"], ["cancel", "cancel"]])) {
    const reply = await post(`/v1/requests/${request_id}/${verb}`, {});
    await check(reply, 404);
    await reply.text();
  }
  const reply = await asked;
  const text = await reply.text();
  if (await check(reply)) assembled(text);
}

/** A conversation whose history grows. */
async function conversation() {
  const messages = [ROBOT];
  for (let turn = 0; turn < 3; ++turn) {
    messages.push(user(pick(QUESTIONS)));
    const reply = await post("/v1/chat/completions", body({ messages, tools: undefined, tool_choice: undefined, n: 1, response_format: undefined }));
    if (!(await check(reply))) {
      await reply.text();
      return;
    }
    const { choices, usage } = await reply.json();
    checkChoice(choices[0]);
    if (turn > 0) count(usage.prompt_tokens_details.cached_tokens > 8 ? "turn reused" : "turn read anew");
    messages.push({ role: "assistant", content: choices[0].message.content ?? "" });
  }
}

/** Asks for much and reads nothing. */
async function deaf() {
  await new Promise((resolve) => {
    const request = http.request({ hostname, port, path: "/v1/chat/completions", method: "POST", headers }, (reply) => {
      reply.pause();
      setTimeout(() => {
        request.destroy();
        resolve();
      }, 300);
    });
    request.on("error", resolve);
    request.on("close", resolve);
    request.end(JSON.stringify(body({ stream: true, ignore_eos: true, max_tokens: 400 })));
  });
  count("deaf");
}

/** Bytes that are no request, or half of one. */
async function garbled() {
  const lines = [
    "GET\r\n\r\n",
    "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 5\r\n\r\n{"a":`,
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    `GET /${"a".repeat(20000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n`,
    `POST /v1/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\nContent-Length: 99999999999999999999\r\n\r\n`,
  ];
  await new Promise((resolve) => {
    const socket = net.connect(Number(port), hostname);
    socket.on("error", resolve);
    socket.on("close", resolve);
    socket.on("data", (data) => assert.ok(!/^HTTP\/1.. 5(?!03)/.test(data.toString()), data.toString()));
    socket.write(Buffer.from(pick(lines), "latin1"));
    setTimeout(() => socket.destroy(), 50);
  });
  count("garbled");
}

async function wrong() {
  const deep = (open, close) => open.repeat(20000) + close.repeat(20000);
  const bodies = [
    "{",
    "[]",
    "\xff\xfe",
    deep("[", "]"),
    '{"messages":7}',
    '{"messages":[{"role":"user","content":{}}]}',
    JSON.stringify(body({ n: 99 })),
    JSON.stringify(body({ top_p: -3 })),
    JSON.stringify(body({ regex: deep("(", ")"), response_format: undefined, choice: undefined, tools: undefined, tool_choice: undefined })),
    JSON.stringify(body({ grammar: "root ::= root", response_format: undefined, regex: undefined, choice: undefined, tools: undefined, tool_choice: undefined })),
    JSON.stringify(body({ temperature: 999999 })),
    JSON.stringify(body({ logit_bias: { "-4": 1 } })),
  ];
  const reply = await post("/v1/chat/completions", pick(bodies));
  count(reply.status);
  assert.equal(reply.status, 400);
  assert.ok((await reply.json()).error.message);
}

const look = async () => {
  const reply = await get(pick(["/props", "/metrics", "/health", "/v1/models"]));
  await reply.text();
  await check(reply);
};

/** Replies that are known from a quiet server, and must be the same in any company. */
const known = [
  { messages: [user("Tell me a story about a fox.")], temperature: 1, seed: 7, max_tokens: 60 },
  { messages: [user("What is a river?")], temperature: 0, max_tokens: 60 },
  { messages: [ROBOT, user("Look to the left and nod.")], tools: TOOLS, temperature: 1, seed: 3, max_tokens: 60 },
  {
    messages: [user("Who are you?")],
    response_format: { type: "json_schema", json_schema: { name: "p", schema: PERSON } },
    temperature: 1,
    seed: 5,
    max_tokens: 60,
  },
  { messages: [user("Hello!")], temperature: 1, seed: 11, presence_penalty: 1, repetition_penalty: 1.3, stop: ["you"], max_tokens: 60 },
  { messages: [user("What is 12 plus 30?")], temperature: 1, seed: 2, thinking_token_budget: 9, max_tokens: 60 },
];
const facts = ({ message, finish_reason, finish_detail }) => ({
  content: message.content ?? "",
  reasoning: message.reasoning_content ?? "",
  calls: (message.tool_calls ?? []).map((call) => [call.function.name, call.function.arguments]),
  finish_reason,
  finish_detail,
});
for (const one of known) {
  const reply = await post("/v1/chat/completions", one);
  assert.equal(reply.status, 200, await reply.clone().text());
  one.facts = facts((await reply.json()).choices[0]);
}

async function knownReply() {
  const { facts: expected, ...request } = pick(known);
  const stream = random() < 0.5;
  const reply = await post("/v1/chat/completions", {
    ...request,
    stream,
    ...maybe(0.5, { speculative: pick([{ enabled: false }, { max_length: 1 + below(7) }, { policy: "fixed" }]) }),
    ...maybe(0.3, { priority: below(3) }),
  });
  const text = await reply.text();
  if (!(await check(reply))) return;
  const choice = stream ? assembled(text)[0] : JSON.parse(text).choices[0];
  assert.deepEqual(facts(choice), expected, "company changed a reply");
  count("same as alone");
}

const acts = [polite, polite, streaming, streaming, streaming, cancelling, conversation, deaf, garbled, wrong, look, knownReply, knownReply];

/** Resident MiB, once a second. */
const resident = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
const samples = [];
const quiet = pid ? resident() : 0;
const until = Date.now() + SECONDS * 1000;
const watch = pid ? setInterval(() => samples.push(resident()), 1000) : null;

async function client() {
  while (Date.now() < until) await pick(acts)();
}
await Promise.all(Array.from({ length: CLIENTS }, client));
clearInterval(watch);
console.log(Object.fromEntries(seen));
assert.ok((seen.get(200) ?? 0) > 0, "nobody was served");
assert.ok((seen.get("same as alone") ?? 0) > 0, "no reply was compared");
assert.ok((seen.get("turn reused") ?? 0) > 0, "no turn found the one before it");
for (const status of seen.keys()) assert.ok(!(status >= 500 && status !== 503), `status ${status}`);

let props;
for (let i = 0; i < 300; ++i) {
  props = await (await get("/props")).json();
  if (props.requests.running + props.requests.waiting === 0) break;
  await pause(20);
}
assert.deepEqual(props.requests, { running: 0, waiting: 0 }, "a slot is stuck");
assert.ok(props.cache.bytes <= props.cache.bytes_limit, "memory beyond its ceiling");
const metrics = await (await get("/metrics")).text();
const gauge = (name) => Number(new RegExp(`^octet:${name}(?:\\{[^}]*\\})? (\\S+)$`, "m").exec(metrics)[1]);
assert.equal(gauge("num_requests_running"), 0);
assert.equal(gauge("num_requests_waiting"), 0);
for (const one of known) {
  const reply = await post("/v1/chat/completions", { ...one, facts: undefined });
  assert.equal(reply.status, 200);
  assert.deepEqual(facts((await reply.json()).choices[0]), one.facts, "the crowd changed a later reply");
}

// A crowd leaves kept texts behind, below their ceiling, and what the heap does not give back.
if (pid) {
  const now = resident();
  const kept = props.cache.bytes_limit / 1048576;
  console.log(`resident ${quiet.toFixed(1)} MiB before the crowd, ${now.toFixed(1)} at rest`);
  assert.ok(now <= quiet + kept + 64, `${now} MiB at rest, ${quiet} before, ${kept} for kept texts`);
}

// What grows without end grows in a line; the first third fills caches and the heap.
const late = samples.slice(Math.floor(samples.length / 3));
if (late.length >= 40) {
  const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
  const middle = (late.length - 1) / 2;
  const average = mean(late);
  const slope = mean(late.map((y, x) => (x - middle) * (y - average))) / mean(late.map((_, x) => (x - middle) ** 2));
  const growth = slope * late.length;
  console.log(`resident ${average.toFixed(1)} MiB on average, trend ${growth.toFixed(2)} MiB over ${late.length} s, ` +
    `from ${Math.min(...late).toFixed(1)} to ${Math.max(...late).toFixed(1)}`);
  assert.ok(growth < Math.max(4, average * 0.04), `memory grows: ${growth} MiB in ${late.length} s`);
}
console.log("at rest");
