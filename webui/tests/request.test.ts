import { expect, test } from "vitest";

import type { Props } from "../src/api";
import { request_of } from "../src/request";
import { kDefaults } from "../src/settings";

function props(enabled: boolean, max_length: number): Props {
  return {
    model: "m",
    machine: "cpu",
    n_ctx: 512,
    default_generation_settings: { temperature: 1 },
    speculative: { enabled, reason: enabled ? null : "turned off", max_length },
  };
}

test("drafts are asked for where the server drafts, and no more than it can", () => {
  const asked = (known: Props | null, more = {}) => request_of({ ...kDefaults, ...more }, [], known).speculative;
  expect(asked(props(false, 0))).toBeUndefined();
  expect(asked(null)).toBeUndefined();
  expect(asked(props(true, 3))).toEqual({ enabled: true, max_length: 3 });
  expect(asked(props(true, 15), { draft_max: 5 })).toEqual({ enabled: true, max_length: 5 });
  expect(asked(props(true, 7), { drafting: false })).toEqual({ enabled: false });
});
