import { useRef, useState } from "preact/hooks";

interface ComposerProps {
  running: boolean;
  thinks: boolean;
  on_send: (text: string) => void;
  on_stop: () => void;
  on_end_thinking: () => void;
}

export function Composer({ running, thinks, on_send, on_stop, on_end_thinking }: ComposerProps) {
  const [text, set_text] = useState("");
  const field = useRef<HTMLTextAreaElement>(null);

  function send() {
    if (running || text.trim() === "") {
      return;
    }
    on_send(text);
    set_text("");
    field.current?.focus();
  }

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <label class="hidden" for="message">
        Message
      </label>
      <textarea
        id="message"
        ref={field}
        rows={2}
        placeholder="Message (Enter sends, Shift+Enter starts a line, Escape stops the reply)"
        value={text}
        onInput={(event) => set_text(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            send();
          } else if (event.key === "Escape" && running) {
            on_stop();
          }
        }}
      />
      {running ? (
        <>
          {thinks && (
            <button type="button" onClick={on_end_thinking}>
              End thinking
            </button>
          )}
          <button type="button" class="primary" onClick={on_stop}>
            Stop
          </button>
        </>
      ) : (
        <button type="submit" class="primary" disabled={text.trim() === ""}>
          Send
        </button>
      )}
    </form>
  );
}
