// What a running `octet serve` takes: time to the first token of a first and a second turn, throughput by clients with and without drafts,
// time to cancel, and what the way over HTTP costs a token. Needs no packages. docs/serving_costs.md has figures.
//   node benchmarks/serving.mjs URL throughput|turns|cancel|overhead [NAME=VALUE...]
//   clients=1,2,4,8,16 seconds=6 rounds=3   throughput: levels; seconds of each arm; alternations of plain and drafted
//   text=endless|natural                    throughput: replies that are never over, or as the model ends them
//   words=300 rounds=5                      turns: length of the first prompt; conversations
//   pid=N                                   overhead: the server's process, for its CPU time
//   key=KEY max=N                           API key; tokens of a reply
import { readFileSync } from "node:fs";

const [base, mode, ...pairs] = process.argv.slice(2);
const given = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s)));
const number = (name, usual) => Number(given[name] ?? usual);
const headers = { "content-type": "application/json", ...(given.key ? { authorization: `Bearer ${given.key}` } : {}) };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const median = (list) => [...list].sort((a, b) => a - b)[list.length >> 1];
const plain = { speculative: { enabled: false } };
const drafted = {};

const post = (path, body, signal) => fetch(base + path, { method: "POST", headers, body: JSON.stringify(body), signal });
const get = async (path) => (await fetch(base + path, { headers })).text();
async function ask(body, signal) {
  const reply = await post("/v1/chat/completions", body, signal);
  if (reply.status !== 200) throw new Error(`${reply.status}: ${await reply.text()}`);
  return reply;
}
const QUESTIONS = [
  "What is a river?", "Tell me a story about a fox.", "What is 12 plus 30?", "Do you sell bread?", "Tell me a story about a mouse.",
  "What is the capital of Finland?", "Who are you?", "Give me a Python function that computes the factorial of a number.",
];
const quiet = { chat_template_kwargs: { enable_thinking: false } };
const user = (content) => ({ role: "user", content });

/** Chunks of a stream with the time of each, in milliseconds since `start`. */
async function* chunks(reply, start) {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const part of reply.body) {
    const now = performance.now() - start;
    const events = (rest + decoder.decode(part, { stream: true })).split("\n\n");
    rest = events.pop();
    for (const event of events) if (event.startsWith("data: {")) yield [JSON.parse(event.slice(6)), now];
  }
}

const tokensNow = async () => Number(/^octet:generation_tokens_total (\S+)$/m.exec(await get("/metrics"))[1]);
async function rest() {
  while (Object.values(JSON.parse(await get("/props")).requests).some((n) => n > 0)) await pause(5);
}

/** Tokens a second of so many clients that ask without a pause. */
async function arm(clients, seconds, more) {
  const abort = new AbortController();
  const max_tokens = number("max", 400);
  const endless = (given.text ?? "endless") === "endless" ? { ignore_eos: true } : {};
  const client = async (i) => {
    for (let turn = i; !abort.signal.aborted; ++turn) {
      const body = { messages: [user(QUESTIONS[turn % QUESTIONS.length])], temperature: 1, seed: turn, max_tokens, ...endless, ...quiet, ...more };
      await (await ask(body, abort.signal)).text();
    }
  };
  const all = Array.from({ length: clients }, (_, i) => client(i).catch((error) => abort.signal.aborted || Promise.reject(error)));
  const before = await tokensNow();
  while ((await tokensNow()) < before + 2 * clients) await pause(20);
  const start = performance.now();
  const first = await tokensNow();
  await pause(seconds * 1000);
  const count = (await tokensNow()) - first;
  const took = performance.now() - start;
  abort.abort();
  await Promise.all(all);
  await rest();
  return (count * 1000) / took;
}

const modes = {
  async throughput() {
    for (const clients of (given.clients ?? "1,2,4,8,16").split(",").map(Number)) {
      await arm(clients, number("seconds", 6) / 2, drafted); // costs are learnt by use
      const rates = { plain: [], drafted: [] };
      for (let round = 0; round < number("rounds", 3); ++round) {
        const order = [["plain", plain], ["drafted", drafted]];
        for (const [name, more] of round % 2 ? order.reverse() : order) rates[name].push(await arm(clients, number("seconds", 6), more));
      }
      const [a, b] = [median(rates.plain), median(rates.drafted)];
      const shown = (list) => list.map((rate) => rate.toFixed(1)).join(" ");
      console.log(`${clients} clients: plain ${a.toFixed(1)} tokens/s, drafted ${b.toFixed(1)}, ratio ${(b / a).toFixed(3)}   (${shown(rates.plain)} | ${shown(rates.drafted)})`);
    }
  },

  async turns() {
    const rows = [];
    for (let round = 0; round < number("rounds", 5); ++round) {
      // Words of their own at the start: nothing of another conversation can be reused.
      const text = Array.from({ length: number("words", 300) }, (_, i) => `${round} ${["river", "fox", "bread", "mouse"][i % 4]}`).join(" ");
      const messages = [{ role: "system", content: text }];
      const row = [];
      for (const question of QUESTIONS.slice(0, 2)) {
        messages.push(user(question));
        const start = performance.now();
        let first = 0;
        let content = "";
        let usage = null;
        const body = { messages, temperature: 0, max_tokens: number("max", 24), stream: true, stream_options: { include_usage: true }, ...quiet };
        for await (const [chunk, at] of chunks(await ask(body), start)) {
          const piece = chunk.choices[0]?.delta.content;
          if (piece && first === 0) first = at;
          content += piece ?? "";
          usage = chunk.usage ?? usage;
        }
        row.push({ first, prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details.cached_tokens });
        messages.push({ role: "assistant", content });
      }
      rows.push(row);
    }
    for (const turn of [0, 1]) {
      const { prompt, cached } = rows.at(-1)[turn];
      console.log(`turn ${turn + 1}: first token after ${median(rows.map((row) => row[turn].first)).toFixed(1)} ms; prompt ${prompt} tokens, ${cached} of them kept`);
    }
  },

  async cancel() {
    const waits = [];
    const gaps = [];
    for (let round = 0; round < number("rounds", 20); ++round) {
      const request_id = `cancel-${process.pid}-${round}`;
      const start = performance.now();
      let asked = 0;
      let last = 0;
      let seen = 0;
      let answer = null;
      const body = { messages: [user(QUESTIONS[round % 8])], temperature: 1, seed: round, max_tokens: 700, ignore_eos: true, stream: true, request_id, ...quiet };
      for await (const [chunk, at] of chunks(await ask(body), start)) {
        if (chunk.choices[0]?.finish_reason) {
          waits.push(at - asked);
        } else if (asked === 0 && chunk.choices[0]?.delta.content) {
          if (last > 0) gaps.push(at - last);
          last = at;
          if (++seen === 6 + (round % 5)) {
            asked = performance.now() - start;
            answer = post(`/v1/requests/${request_id}/cancel`, {});
          }
        }
      }
      await (await answer).text();
    }
    console.log(`cancel to the stream's end: median ${median(waits).toFixed(2)} ms, most ${Math.max(...waits).toFixed(2)} ms; between chunks ${median(gaps).toFixed(2)} ms`);
  },

  async overhead() {
    const ticks = () => {
      if (!given.pid) return 0;
      const fields = readFileSync(`/proc/${given.pid}/stat`, "utf8").split(") ")[1].split(" ");
      return (Number(fields[11]) + Number(fields[12])) * 10; // ms of user and system
    };
    const costs = { whole: [], streamed: [] };
    const walls = [];
    for (let round = 0; round < number("rounds", 6); ++round) {
      for (const stream of [false, true]) {
        const before = ticks();
        let count = 0;
        for (let i = 0; i < 4; ++i) {
          const body = { messages: [user(QUESTIONS[i])], temperature: 1, seed: i, max_tokens: number("max", 600), ignore_eos: true, stream, ...quiet, ...plain };
          if (stream) body.stream_options = { include_usage: true };
          const start = performance.now();
          if (stream) {
            let first = 0;
            let last = 0;
            for await (const [chunk, at] of chunks(await ask(body), start)) {
              if (chunk.choices[0]?.delta.content) {
                first ||= at;
                last = at;
              }
              if (chunk.usage) {
                count += chunk.usage.completion_tokens;
                walls.push((last - first - chunk.timings.predicted_ms) / chunk.usage.completion_tokens);
              }
            }
          } else {
            count += (await (await ask(body)).json()).usage.completion_tokens;
          }
        }
        costs[stream ? "streamed" : "whole"].push((ticks() - before) / count);
      }
    }
    const [whole, streamed] = [median(costs.whole), median(costs.streamed)];
    console.log(`between the first and the last chunk, beyond the engine's steps: ${(1000 * median(walls)).toFixed(1)} us a token`);
    if (given.pid) console.log(`CPU time of the server: ${whole.toFixed(4)} ms a token in whole replies, ${streamed.toFixed(4)} in streams: ${(1000 * (streamed - whole)).toFixed(1)} us for HTTP`);
  },
};

if (!(mode in modes)) {
  console.error("node benchmarks/serving.mjs URL throughput|turns|cancel|overhead [NAME=VALUE...]");
  process.exit(2);
}
await modes[mode]();
