import { expect, test } from "vitest";

import { event_data } from "../src/event_stream";

const kText = 'data: {"a":1}\n\n: keep-alive\n\ndata: first\ndata: second\r\n\r\nevent: x\ndata:tight é€😀\n\ndata: unfinished';
const kEvents = ['{"a":1}', "first\nsecond", "tight é€😀"];

function stream(bytes: Uint8Array, sizes: number[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      let at = 0;
      for (const size of sizes) {
        controller.enqueue(bytes.slice(at, at + size));
        at += size;
      }
      controller.enqueue(bytes.slice(at));
      controller.close();
    },
  });
}

async function read(bytes: Uint8Array, sizes: number[]): Promise<string[]> {
  const events: string[] = [];
  for await (const data of event_data(stream(bytes, sizes))) {
    events.push(data);
  }
  return events;
}

test("events are the same for every cut in two, and byte by byte", async () => {
  // A lone "\r" at a cut would be taken for the end of a line by careless readers.
  const bytes = new TextEncoder().encode(kText);
  for (let cut = 0; cut <= bytes.length; ++cut) {
    expect(await read(bytes, [cut]), `cut at ${cut}`).toEqual(kEvents);
  }
  expect(await read(bytes, Array(bytes.length).fill(1))).toEqual(kEvents);
});
