// What is made for voices, on a running server with the shipped pair: clauses in the stream, and interruption.
//   node serve_speech.mjs http://127.0.0.1:PORT KEY
import assert from "node:assert/strict";
import OpenAI from "openai";
import { ROBOT, TOOLS, base, key, post, refused, run } from "./serve_client.mjs";

const client = new OpenAI({ baseURL: `${base}/v1`, apiKey: key, maxRetries: 0, timeout: 60_000 });
const model = (await client.models.list()).data[0].id;

const ask = (text, more = {}) => ({
  model,
  messages: [ROBOT, { role: "user", content: text }],
  temperature: 0,
  max_tokens: 120,
  reasoning_effort: "none",
  ...more,
});
const characters = (text, start, end) => [...text].slice(start, end).join("");

/** Content, clauses in the order of the stream, and how much content was there when each came. */
async function heard(request, onText = async () => {}) {
  const reply = { content: "", clauses: [], calls: 0, callsBefore: [], detail: null };
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) {
    const [choice] = chunk.choices;
    if (!choice) continue;
    reply.content += choice.delta.content ?? "";
    for (const clause of choice.delta.clauses ?? []) {
      assert.ok(clause.end <= [...reply.content].length, "a clause is of what was sent");
      assert.equal(reply.calls, 0, "clauses come before the call that follows them");
      reply.clauses.push(clause);
    }
    reply.calls += choice.delta.tool_calls?.length ?? 0;
    reply.detail = choice.finish_detail ?? reply.detail;
    if (choice.delta.content) await onText(reply.content);
  }
  return reply;
}

const bargeIn = async (id, spoken) => {
  const reply = await post(`/v1/requests/${id}/barge_in`, { spoken_characters: spoken });
  assert.equal(reply.status, 200);
  return reply.json();
};

await run({
  async "clauses are the speech, cut"() {
    const include = { stream_options: { include_clauses: true } };
    for (const speculative of [{ enabled: false }, { policy: "fixed" }]) {
      const request = ask("Tell me a story about a mouse.", { ...include, speculative });
      const { content, clauses } = await heard(request);
      assert.ok(clauses.length > 1, JSON.stringify(clauses));
      let end = 0;
      for (const clause of clauses) {
        assert.equal(characters(content, clause.start, clause.end), clause.text);
        assert.match(characters(content, end, clause.start), /^\s*$/);
        end = clause.end;
      }
      assert.match(characters(content, end), /^\s*$/);
      for (const clause of clauses.slice(0, -1)) assert.ok([...clause.text].length >= 12);
    }
    assert.equal((await heard(ask("Tell me a story about a mouse."))).clauses.length, 0);
    const long = { include_clauses: true, clause_characters: 60 };
    const { clauses } = await heard(ask("Tell me a story about a mouse.", { stream_options: long }));
    for (const clause of clauses.slice(0, -1)) assert.ok([...clause.text].length >= 60);
  },
  async "neither thoughts nor calls are spoken"() {
    const request = ask("Please look left.", { tools: TOOLS, stream_options: { include_clauses: true } });
    const { content, clauses, calls } = await heard(request);
    assert.ok(calls > 0);
    assert.equal(clauses.map((clause) => clause.text).join(" "), content.trim());
    const thinking = ask("What is 12 plus 30?", { reasoning_effort: "low", stream_options: { include_clauses: true } });
    const thought = await heard(thinking);
    assert.equal(thought.clauses.map((clause) => clause.text).join(" "), thought.content.trim());
  },
  async "an interruption keeps what was heard, and so does the cache"() {
    for (const [animal, speculative] of [["dragon", { enabled: false }], ["fox", { policy: "fixed" }]]) {
      const id = `heard-${animal}`;
      const request = ask(`Tell me a story about a ${animal}.`, { ignore_eos: true, max_tokens: 700, request_id: id, speculative });
      let kept = null;
      const { content, detail } = await heard(request, async (text) => {
        if (kept === null && text.length > 60) kept = await bargeIn(id, 30);
      });
      assert.equal(detail, "barge_in");
      assert.equal(kept.text, characters(content, 0, kept.characters));
      assert.ok(kept.characters > 0 && kept.characters <= 30);
      const next = ask("", { max_tokens: 8 });
      next.messages = [...request.messages, { role: "assistant", content: kept.text }, { role: "user", content: "Stop!" }];
      const { usage } = await client.chat.completions.create(next);
      assert.equal(usage.prompt_tokens_details.cached_tokens, kept.tokens);
    }
  },
  async "so it does when all was written already"() {
    const request = ask("What is the capital of Finland?", { request_id: "long-over" });
    const whole = await client.chat.completions.create(request);
    const { content } = whole.choices[0].message;
    const kept = await bargeIn("long-over", 12);
    assert.equal(kept.text, characters(content, 0, kept.characters));
    assert.ok(kept.characters > 0 && kept.characters <= 12);
    const unheard = ask("", { max_tokens: 1 });
    unheard.messages = [...request.messages, { role: "assistant", content }, { role: "user", content: "Go on." }];
    const forgotten = await client.chat.completions.create(unheard);
    assert.equal(forgotten.usage.prompt_tokens_details.cached_tokens, kept.tokens, "the rest is forgotten");
    const next = ask("", { max_tokens: 8 });
    next.messages = [...request.messages, { role: "assistant", content: kept.text }, { role: "user", content: "Stop!" }];
    const { usage } = await client.chat.completions.create(next);
    assert.equal(usage.prompt_tokens_details.cached_tokens, kept.tokens);
    assert.equal((await bargeIn("long-over", 100000)).text, content);
    assert.equal((await bargeIn("long-over", 0)).text, "");
  },
  async "what cannot be interrupted"() {
    assert.equal((await post("/v1/requests/nobody/barge_in", { spoken_characters: 1 })).status, 404);
    assert.equal((await post("/v1/requests/long-over/barge_in", {})).status, 400);
    assert.equal((await post("/v1/requests/long-over/barge_in", { spoken_characters: -1 })).status, 400);
    const complete = (more) => client.completions.create({ model, prompt: "a", stream: true, ...more });
    await refused(400, "stream_options.include_clauses", () => complete({ stream_options: { include_clauses: true } }));
    await refused(400, "stream_options.clause_characters", () => complete({ stream_options: { clause_characters: 0 } }));
  },
});
