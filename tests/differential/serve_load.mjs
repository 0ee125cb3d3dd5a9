// A rough crowd against a running server, for a few seconds: readers that stop reading, clients that
// hang up, bodies that are none, more requests than fit. Afterwards everything must be at rest.
//   node serve_load.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";

const [base, key] = process.argv.slice(2);
const { hostname, port } = new URL(base);
const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
const SECONDS = Number(process.env.OCTET_LOAD_SECONDS ?? 4);
const until = Date.now() + SECONDS * 1000;
const seed = Number(process.env.OCTET_LOAD_SEED ?? Date.now() % 1e6);
console.log(`seed ${seed}`);

let state = seed;
const random = () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);
const pick = (list) => list[Math.floor(random() * list.length)];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const QUESTIONS = ["What is a river?", "Tell me a story about a fox.", "What is 12 plus 30?", "Do you sell bread?"];
const body = (more = {}) =>
  JSON.stringify({
    messages: [{ role: "user", content: pick(QUESTIONS) }],
    max_tokens: 10 + Math.floor(random() * 60),
    temperature: random() < 0.5 ? 0 : 1,
    ...more,
  });

const seen = new Map();
const count = (status) => seen.set(status, (seen.get(status) ?? 0) + 1);

async function polite() {
  const reply = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: body() });
  count(reply.status);
  const json = await reply.json();
  if (reply.status === 200) {
    assert.ok(json.choices[0].finish_reason);
  } else {
    assert.equal(reply.status, 429);
    assert.ok(reply.headers.get("retry-after"));
    await pause(20);
  }
}

/** Reads a stream to its end, or leaves in the middle. */
async function streaming() {
  const abort = new AbortController();
  const leave = random() < 0.5;
  try {
    const reply = await fetch(`${base}/v1/chat/completions`, {
      method: "POST",
      headers,
      body: body({ stream: true, stream_options: { include_usage: true } }),
      signal: abort.signal,
    });
    count(reply.status);
    let text = "";
    let chunks = 0;
    const reader = reply.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      text += Buffer.from(part.value).toString();
      if (leave && ++chunks > random() * 6) {
        abort.abort();
        return;
      }
    }
    if (reply.status === 200) assert.ok(text.endsWith("data: [DONE]\n\n"), text.slice(-80));
  } catch (error) {
    if (error.name !== "AbortError") throw error;
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
    request.end(body({ stream: true, ignore_eos: true, max_tokens: 400 }));
  });
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
  ];
  await new Promise((resolve) => {
    const socket = net.connect(Number(port), hostname);
    socket.on("error", resolve);
    socket.on("close", resolve);
    socket.write(Buffer.from(pick(lines), "latin1"));
    setTimeout(() => socket.destroy(), 50);
  });
}

async function wrong() {
  const bodies = ["{", "[]", '{"messages":7}', '{"messages":[{"role":"user","content":{}}]}', body({ n: 99 }), body({ top_p: -3 })];
  const reply = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: pick(bodies) });
  count(reply.status);
  assert.equal(reply.status, 400);
  assert.ok((await reply.json()).error.message);
}

async function client() {
  while (Date.now() < until) {
    await pick([polite, polite, streaming, streaming, streaming, deaf, garbled, wrong])();
  }
}

await Promise.all(Array.from({ length: 16 }, client));
console.log(Object.fromEntries(seen));
assert.ok((seen.get(200) ?? 0) > 0, "nobody was served");
for (const status of seen.keys()) assert.ok([200, 400, 429].includes(status), `status ${status}`);

let props;
for (let i = 0; i < 300; ++i) {
  props = await (await fetch(`${base}/props`, { headers })).json();
  if (props.requests.running + props.requests.waiting === 0) break;
  await pause(20);
}
assert.deepEqual(props.requests, { running: 0, waiting: 0 }, "a slot is stuck");
assert.ok(props.cache.bytes <= props.cache.bytes_limit, "memory beyond its ceiling");
const reply = await fetch(`${base}/v1/chat/completions`, { method: "POST", headers, body: body() });
assert.equal(reply.status, 200);
console.log("at rest");
