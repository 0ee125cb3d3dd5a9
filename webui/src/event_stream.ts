// Server-sent events out of a byte stream: characters and events may be cut anywhere. Comments and
// fields other than `data` are dropped.

/** Yields the data of each event. Ends with the stream; an unfinished event at its end is dropped. */
export async function* event_data(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = bytes.getReader();
  const decoder = new TextDecoder();
  let pending = "";
  let data: string[] = [];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      pending += decoder.decode(value, { stream: !done });
      const lines = pending.split(/\r\n|\n/);
      pending = lines.pop() ?? "";
      for (const line of lines) {
        if (line.startsWith("data:")) {
          data.push(line.slice(line[5] === " " ? 6 : 5));
        } else if (line === "" && data.length > 0) {
          yield data.join("\n");
          data = [];
        }
      }
      if (done) {
        return;
      }
    }
  } finally {
    reader.cancel().catch(() => undefined); // the server takes it as "stop speaking"
  }
}
