// States that a server is in once: going down gently, going down at once, and without drafts.
//   node serve_states.mjs http://127.0.0.1:PORT KEY drain|hard|plain PID
import assert from "node:assert/strict";
import { base, get, post, run } from "./serve_client.mjs";

const [mode, pid] = process.argv.slice(4);
const ask = (more) => ({ messages: [{ role: "user", content: "Tell me a story about a fox." }], temperature: 0, ...more });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A long reply; `onText` is called once, when it has begun. What came of it, whatever ends it. */
async function long(onText) {
  const reply = await post("/v1/chat/completions", ask({ ignore_eos: true, max_tokens: 700, stream: true }));
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

const modes = {
  async drain() {
    let refused = false;
    const { text, broken } = await long(async () => {
      process.kill(Number(pid), "SIGTERM");
      for (let i = 0; i < 100 && !refused; ++i) {
        await pause(10);
        refused = !(await takes());
      }
    });
    assert.ok(refused, "new requests are taken while it goes down");
    assert.equal(broken, null);
    assert.ok(text.includes('"finish_reason":"length"'), text.slice(-300));
    assert.ok(text.endsWith("data: [DONE]\n\n"));
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
    const { speculative } = await (await get("/props")).json();
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
