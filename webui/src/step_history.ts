// Figures of the last steps, as the charts want them. Plain values; adding returns a new history.
import type { Step } from "./api";

export const kShownSteps = 120;

export interface StepHistory {
  steps: Step[]; // the last ones
  count: number; // steps so far, plain ones included
  drafted_steps: number;
  accepted: number;
  drafted: number;
  reached: number[]; // by position: steps that accepted at least so many drafts
}

export function no_steps(): StepHistory {
  return { steps: [], count: 0, drafted_steps: 0, accepted: 0, drafted: 0, reached: [] };
}

export function add_step(history: StepHistory, step: Step): StepHistory {
  const reached = [...history.reached];
  for (let position = 0; position < step.drafted; ++position) {
    reached[position] = (reached[position] ?? 0) + (step.accepted > position ? 1 : 0);
  }
  return {
    steps: [...history.steps, step].slice(-kShownSteps),
    count: history.count + 1,
    drafted_steps: history.drafted_steps + (step.drafted > 0 ? 1 : 0),
    accepted: history.accepted + step.accepted,
    drafted: history.drafted + step.drafted,
    reached,
  };
}

/** 1 + accepted drafts a drafted step; null before the first. */
export function acceptance_length(history: StepHistory): number | null {
  return history.drafted_steps === 0 ? null : 1 + history.accepted / history.drafted_steps;
}
