// States that a server is in once, or by its flags: warming up, going down gently, going down at once, without drafts,
// without a queue, with little memory, and with flags from a file.
//   node serve_states.mjs http://127.0.0.1:PORT KEY warm|drain|hard|plain|full|flags|memory|open PID
//   memory: then the limit, and "resident" to judge the process by what is resident of it
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { ROBOT, base, get, headers, page_status, post, run } from "./serve_client.mjs";

const [mode, pid] = process.argv.slice(4);
const ask = (more) => ({ messages: [{ role: "user", content: "Tell me a story about a fox." }], temperature: 0, ...more });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A long reply; `onText` is called once, when it has begun. What came of it, whatever ends it. */
async function long(onText, more = {}) {
  const reply = await post("/v1/chat/completions", ask({ ignore_eos: true, max_tokens: 1500, stream: true, ...more }));
  assert.equal(reply.status, 200);
  let text = "";
  let begun = false;
  try {
    const decoder = new TextDecoder();
    for await (const part of reply.body) {
      text += decoder.decode(part, { stream: true });
      if (!begun && text.includes('"content":"')) {
        begun = true;
        await onText();
      }
    }
  } catch (error) {
    return { text, broken: error };
  }
  return { text, broken: null };
}

/** Whether the server takes another request. */
async function takes() {
  try {
    const reply = await fetch(`${base}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${process.argv[3]}`, connection: "close" },
      body: JSON.stringify(ask({ max_tokens: 2 })),
    });
    await reply.text();
    return reply.status === 200;
  } catch {
    return false;
  }
}

/** GET on the agent's own connection, if it has one. */
const get_on = (agent, path) =>
  new Promise((resolve, reject) => {
    const request = http.get(base + path, { agent, headers }, (reply) => {
      reply.resume();
      reply.on("end", () => resolve(reply));
    });
    request.on("error", reject);
  });

const modes = {
  async warm() {
    const early = await get("/ready");
    assert.equal(early.status, 503);
    assert.ok(Number(early.headers.get("retry-after")) >= 1);
    assert.equal((await early.json()).error.type, "unavailable_error");
    assert.equal((await get("/health")).status, 200, "it lives meanwhile");
    let ready = early;
    for (let i = 0; i < 1200 && ready.status === 503; ++i) {
      await pause(25);
      ready = await get("/ready");
    }
    assert.equal(ready.status, 200);
    assert.equal((await ready.json()).drafted, true);
    const metrics = await (await get("/metrics")).text();
    assert.match(metrics, /^octet:generation_tokens_total 0$/m, "warm-ups are nobody's traffic");
    assert.match(metrics, /^octet:prompt_tokens_total 0$/m);
  },
  async full() {
    const { total_slots, queue_length } = await (await get("/props")).json();
    assert.deepEqual([total_slots, queue_length], [1, 0]);
    for (let i = 0; (await get("/ready")).status === 503 && i < 400; ++i) await pause(25);
    let busy;
    const { text } = await long(async () => {
      busy = await post("/v1/chat/completions", ask({ max_tokens: 2 }));
      await post("/v1/requests/first/cancel", "");
    }, { request_id: "first" });
    assert.ok(text.includes('"finish_detail":"cancelled"'));
    assert.equal(busy.status, 429);
    assert.ok(Number(busy.headers.get("retry-after")) >= 1);
    const { error } = await busy.json();
    assert.deepEqual([error.type, error.code], ["rate_limit_error", "queue_full"]);
    for (let i = 0; i < 5; ++i) {
      assert.equal((await post("/v1/chat/completions", ask({ max_tokens: 2 }))).status, 200, "once there is a place");
    }
  },
  async flags() {
    const from = (origin) => fetch(`${base}/v1/models`, { headers: { ...headers, origin } });
    const models = await (await get("/v1/models")).json();
    assert.equal(models.data[0].id, "from-line", "--alias: the command line wins");
    const props = await (await get("/props")).json();
    assert.equal(props.queue_length, 5, "--queue: the file wins over the environment");
    assert.equal(props.default_generation_settings.max_tokens, 17, "--predict: from the environment");
    assert.equal((await fetch(`${base}/v1/models`, { headers: { authorization: "Bearer second-key" } })).status, 200, "--api-key-file");
    assert.equal((await fetch(`${base}/v1/models`, { headers: { authorization: "Bearer third-key" } })).status, 401);
    const page = await from("https://page.example");
    assert.equal(page.status, 200, "--cors-origin");
    assert.equal(page.headers.get("access-control-allow-origin"), "https://page.example");
    assert.equal((await from("https://other.example")).status, 403);
    assert.equal(props.limits.body_bytes, 3000);
    assert.equal((await post("/v1/chat/completions", ask({ user: "x".repeat(4000) }))).status, 413, "--max-body");
    assert.equal((await post("/v1/chat/completions", ask({ max_tokens: 1, user: "x".repeat(1000) }))).status, 200);
    for (let i = 0; (await get("/ready")).status === 503 && i < 400; ++i) await pause(25);
    assert.equal((await (await get("/props")).json()).cache.pinned, 1, "--pin-system");
    const talk = await (await post("/v1/chat/completions", ask({ messages: [ROBOT, { role: "user", content: "Hi." }], ignore_eos: true }))).json();
    const system = await (await post("/tokenize", { messages: [ROBOT], add_generation_prompt: false })).json();
    assert.ok(talk.usage.prompt_tokens_details.cached_tokens >= system.tokens.length - 2, JSON.stringify(talk.usage));
    assert.equal(talk.usage.completion_tokens, 17);
    // --max-connections 8: the ninth is told so.
    const { hostname, port } = new URL(base);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    assert.equal((await get_on(agent, "/health")).statusCode, 200);
    const sockets = [];
    const told = await new Promise((resolve) => {
      for (let i = 0; i < 12; ++i) {
        const socket = net.connect(Number(port), hostname);
        socket.on("error", () => {});
        socket.on("data", (data) => resolve(data.toString()));
        sockets.push(socket);
      }
      setTimeout(() => resolve("nothing"), 5000);
    });
    sockets.forEach((socket) => socket.destroy());
    agent.destroy();
    assert.match(told, /^HTTP\/1\.1 503/);
  },
  async memory() {
    const limit = Number(process.argv[6]);
    const mib = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
    for (let i = 0; (await get("/ready")).status === 503 && i < 400; ++i) await pause(25);
    let most = 0;
    for (let i = 0; i < 40; ++i) {
      const content = `${i} ${"Tell me about the sea, the hills, the road and the weather of today. ".repeat(12)}`;
      const reply = await post("/v1/chat/completions", ask({ messages: [{ role: "user", content }], max_tokens: 8 }));
      assert.equal(reply.status, 200, await reply.text());
      const { cache, memory } = await (await get("/props")).json();
      assert.equal(memory.limit_bytes, limit);
      assert.ok(cache.bytes_limit > 0 && cache.bytes_limit < limit);
      assert.ok(cache.bytes <= cache.bytes_limit, `${cache.bytes} > ${cache.bytes_limit}`);
      assert.equal(memory.kv_bytes + memory.draft_context_bytes, cache.bytes);
      const fixed = memory.weights_bytes + memory.drafter_bytes + memory.scratch_bytes + memory.program_bytes;
      assert.ok(fixed > 0 && fixed + cache.bytes <= limit, JSON.stringify(memory));
      most = Math.max(most, mib("RssAnon"));
    }
    const { cache } = await (await get("/props")).json();
    assert.ok(cache.evicted > 0, "nothing had to go: the limit was not reached");
    console.log(`resident ${most.toFixed(1)} MiB of ${(limit / 1048576).toFixed(1)}`);
    if (process.argv[7] === "resident") assert.ok(most <= limit / 1048576, `${most} MiB are more than the limit`);
  },
  async drain() {
    let refused = false;
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const states = [];
    const { text, broken } = await long(async () => {
      states.push((await get_on(agent, "/ready")).statusCode);
      process.kill(Number(pid), "SIGTERM");
      await pause(100);
      states.push((await get_on(agent, "/ready")).statusCode);
      for (let i = 0; i < 100 && !refused; ++i) {
        await pause(10);
        refused = !(await takes());
      }
    });
    agent.destroy();
    assert.ok(refused, "new requests are taken while it goes down");
    assert.deepEqual(states, [200, 503], "/ready before and while it goes down");
    assert.equal(broken, null);
    assert.ok(text.includes('"finish_reason":"length"'), text.slice(-300));
    assert.ok(text.endsWith("data: [DONE]\n\n"));
  },
  async open() {
    assert.equal((await fetch(`${base}/v1/models`)).status, 200, "there is no key");
    assert.equal(await page_status("robot.example", "http://robot.example"), 403, "anybody may point a name here");
    assert.equal(await page_status("robot.example", "http://localhost:3000"), 200);
  },
  async hard() {
    let asked = 0;
    const { text } = await long(async () => {
      process.kill(Number(pid), "SIGTERM");
      await pause(100);
      process.kill(Number(pid), "SIGTERM");
      asked = Date.now();
    });
    assert.ok(!text.includes('"finish_reason":"length"'), "the reply was not waited for");
    assert.ok(Date.now() - asked < 2000, `${Date.now() - asked} ms`);
  },
  async plain() {
    const { speculative, ...props } = await (await get("/props")).json();
    assert.equal(props.chat_template_origin, "built-in template for Gemma 4", "--chat-template");
    assert.equal(props.thinking_by_default, false);
    const rendered = await (await post("/apply-template", ask({}))).json();
    assert.equal(rendered.thinking, false, "nothing was said");
    const asked = await (await post("/apply-template", ask({ thinking: { type: "enabled" } }))).json();
    assert.equal(asked.thinking, true);
    assert.notEqual(asked.prompt, rendered.prompt);
    assert.equal(speculative.enabled, false);
    assert.ok(speculative.reason.includes("--draft-max 0") || speculative.reason.includes("-md"), speculative.reason);
    assert.equal(speculative.max_length, 0);
    assert.equal((await (await get("/ready")).json()).drafted, false);
    const reply = await (await post("/v1/chat/completions", ask({ max_tokens: 20 }))).json();
    assert.ok(reply.choices[0].message.content.length > 0);
    assert.equal(reply.metrics.speculative_decoding, null);
    assert.equal("draft_n" in reply.timings, false);
    const refused = await post("/v1/chat/completions", ask({ speculative: { enabled: true, max_length: 3 } }));
    assert.equal(refused.status, 400);
    assert.equal((await refused.json()).error.param, "speculative.max_length");
    assert.equal((await post("/v1/chat/completions", ask({ max_tokens: 2, speculative: { enabled: false } }))).status, 200);
    const constrained = await (await post("/v1/chat/completions", ask({ regex: "abcdefgh[0-9]" }))).json();
    assert.match(constrained.choices[0].message.content, /^abcdefgh[0-9]$/);
  },
};

await run({ [mode]: modes[mode] });
