// What drafting does right now: acceptance, lengths, rates and what steps cost.
import type { Timings } from "./api";
import { StepChart } from "./step_chart";
import { acceptance_length, type StepHistory } from "./step_history";

interface LivePanelProps {
  history: StepHistory;
  timings: Timings | null;
}

export function LivePanel({ history, timings }: LivePanelProps) {
  const length = acceptance_length(history);
  const latest = history.steps.at(-1);
  return (
    <section class="live" aria-label="Live figures">
      <dl>
        <Figure name="tokens/s" value={timings?.predicted_per_second} digits={1} />
        <Figure name="tokens a drafted step" value={length} digits={2} />
        <Figure name="drafts in the last step" value={latest?.drafted} digits={0} />
        <Figure name="ms to the first token" value={timings?.first_token_ms} digits={0} />
      </dl>
      <AcceptanceBars history={history} />
      <StepChart
        title="Tokens a step"
        history={history}
        series={[
          { label: "drafted", of: (step) => step.drafted, colour: "--quiet" },
          { label: "accepted", of: (step) => step.accepted, colour: "--drafted" },
        ]}
      />
      <StepChart
        title="Milliseconds a step"
        history={history}
        series={[
          { label: "verify", of: (step) => step.verify_ms, colour: "--own" },
          { label: "draft", of: (step) => step.draft_ms, colour: "--drafted" },
        ]}
      />
    </section>
  );
}

function Figure({ name, value, digits }: { name: string; value: number | null | undefined; digits: number }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value === null || value === undefined ? "–" : value.toFixed(digits)}</dd>
    </div>
  );
}

/** Share of drafted steps that accepted at least so many drafts. */
function AcceptanceBars({ history }: { history: StepHistory }) {
  if (history.drafted_steps === 0) {
    return null;
  }
  return (
    <figure class="bars">
      <figcaption>Steps that accept at least so many drafts</figcaption>
      <ol>
        {history.reached.map((count, index) => {
          const share = count / history.drafted_steps;
          return (
            <li key={index}>
              <span>{index + 1}</span>
              <span class="bar" style={{ "--share": share }} />
              <span>{(share * 100).toFixed(0)} %</span>
            </li>
          );
        })}
      </ol>
    </figure>
  );
}
