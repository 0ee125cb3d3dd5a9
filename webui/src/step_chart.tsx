// A line per series over the last steps, drawn by uPlot. Colours follow the page's theme.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import type { Step } from "./api";
import type { StepHistory } from "./step_history";

interface Series {
  label: string;
  of: (step: Step) => number;
  colour: string; // a custom property
}

interface StepChartProps {
  title: string;
  history: StepHistory;
  series: Series[];
}

const kHeight = 130;

/** A canvas does not understand light-dark(): an element resolves it. */
function colour(name: string): string {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const resolved = getComputedStyle(probe).color;
  probe.remove();
  return resolved;
}

export function StepChart({ title, history, series }: StepChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);

  useEffect(() => {
    const width = place.current!.clientWidth;
    const axis = { stroke: () => colour("--quiet"), grid: { stroke: () => colour("--line"), width: 1 } };
    const chart = new uPlot(
      {
        width,
        height: kHeight,
        legend: { show: false }, // its colours would not follow the theme
        cursor: { show: false },
        scales: { x: { time: false }, y: { range: (_plot, _min, max) => [0, Math.max(1, max * 1.1)] } },
        axes: [
          { ...axis, size: 24 },
          { ...axis, size: 36 },
        ],
        series: [
          { label: "step" },
          ...series.map(({ label, colour: name }) => ({ label, stroke: () => colour(name), width: 2, points: { show: false } })),
        ],
      },
      [[], ...series.map(() => [])],
      place.current!,
    );
    plot.current = chart;
    const resized = new ResizeObserver(([entry]) => chart.setSize({ width: entry!.contentRect.width, height: kHeight }));
    resized.observe(place.current!);
    const redraw = () => chart.redraw();
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributes: true });
    const system = matchMedia("(prefers-color-scheme: dark)");
    system.addEventListener("change", redraw);
    return () => {
      resized.disconnect();
      theme.disconnect();
      system.removeEventListener("change", redraw);
      chart.destroy();
    };
  }, []);

  useEffect(() => {
    const first = history.count - history.steps.length + 1;
    plot.current?.setData([
      history.steps.map((_step, index) => first + index),
      ...series.map(({ of }) => history.steps.map(of)),
    ]);
  }, [history]);

  const latest = history.steps.at(-1);
  const spoken = latest === undefined ? "no steps yet" : series.map(({ label, of }) => `${label} ${of(latest).toFixed(1)}`).join(", ");
  return (
    <figure class="chart" role="img" aria-label={`${title}, last step: ${spoken}`}>
      <figcaption>
        {title}
        {series.map(({ label, colour: name }) => (
          <span key={label} class="key" style={{ color: `var(${name})` }}>
            {label}
          </span>
        ))}
      </figcaption>
      <div ref={place} />
    </figure>
  );
}
