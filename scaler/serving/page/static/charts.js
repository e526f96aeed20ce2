// What the charts of a target show, and how each is drawn: uPlot draws, the legends are ours (keyboard, screen reader).

import { colour, h, setAttribute, setText } from "./dom.js";
import { clock, duration, number, percent } from "./format.js";

const HEIGHT = 132;
const SHARE_AXIS = 54;
const LATENCIES = { ttft: "first token", queue_time: "in the queue", itl: "between tokens", e2e: "whole request" };

/** Grid and labels of a logarithmic axis: powers of ten only. */
const DECADES = {
  splits: (_plot, _axis, low, high) => {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    return Array.from({ length: Math.floor(Math.log10(high) + 1e-9) - first + 1 }, (_, i) => 10 ** (first + i));
  },
  filter: (_plot, splits) => splits,
};

/** The lines of each chart: {name: column, label, colour: of the theme, …}. `quantile` is p50, p95 or p99. */
export function chartsOf(series, quantile) {
  const demand = series.names("demand.");
  return [
    {
      title: "Replicas",
      lines: [
        { name: "ready", label: "ready", colour: "line-2", steps: true, fill: true },
        { name: "starting", label: "starting", colour: "line-3", steps: true },
        { name: "requested", label: "requested", colour: "line-6", steps: true, dash: [4, 3] },
        { name: "emission", label: "emission", colour: "line-4", steps: true, dash: [1, 3] },
        { name: "unknown_pods", label: "unknown pods", colour: "bad", steps: true },
        { name: "desired", label: "wanted", colour: "line-1", steps: true, width: 2 },
      ],
    },
    {
      title: "Demand, in replicas",
      lines: [
        ...demand.map((name, i) => ({ name, label: name.slice("demand.".length), colour: `line-${(i % 5) + 2}` })),
        { name: "desired", label: "wanted", colour: "line-1", steps: true, width: 2 },
      ],
    },
    {
      title: "Load",
      lines: [
        { name: "waiting", label: "waiting", colour: "line-3", width: 2 },
        { name: "running", label: "running", colour: "line-2" },
        { name: "arrival_rate", label: "arrivals/s", colour: "line-4" },
        { name: "kv_cache_usage", label: "KV cache", colour: "line-6", dash: [4, 3], scale: "share", text: percent },
      ],
    },
    {
      title: `Latency, ${quantile}`,
      logarithmic: true,
      lines: Object.entries(LATENCIES).map(([name, label], i) => ({
        name: `${name}.${quantile}`,
        label,
        colour: `line-${i + 1}`,
        text: duration,
        positive: true,
      })),
    },
  ];
}

/** One chart with its legend. `onPick(time)` hears where it was clicked. */
export class Chart {
  constructor(what, onPick) {
    this.what = what;
    this.off = new Set();
    this.moment = null;
    this.legend = what.lines.map((line) => this.entry(line));
    this.place = h("div", { class: "plot", "aria-hidden": "true" });
    this.element = h(
      "figure",
      { class: "chart" },
      h("figcaption", {}, h("h3", {}, what.title), h("ul", { class: "legend" }, ...this.legend)),
      this.place,
    );
    this.onPick = onPick;
    this.resized = new ResizeObserver(() => this.plot?.setSize(this.size()));
  }

  entry(line) {
    const swatch = h("i", { class: "swatch" });
    swatch.style.background = `var(--${line.colour})`;
    const value = h("b", {});
    const button = h("button", { type: "button", "aria-pressed": "true" }, swatch, line.label, " ", value);
    button.addEventListener("click", () => {
      const off = !this.off.delete(line.name);
      if (off) this.off.add(line.name);
      button.setAttribute("aria-pressed", String(!off));
      this.plot?.setSeries(this.what.lines.indexOf(line) + 1, { show: !off });
    });
    const entry = h("li", {}, button);
    entry.number = value;
    return entry;
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: HEIGHT };
  }

  /** Show the numbers between two times, with a mark at the moment that is looked at; null is now. */
  show(series, [from, to], i, moment) {
    this.moment = moment;
    this.what.lines.forEach((line, n) => {
      const value = series.at(line.name, i);
      setText(this.legend[n].number, (line.text ?? number)(value));
      setAttribute(this.legend[n], "data-empty", series.column(line.name).some((each) => each !== null) ? null : "");
    });
    const data = [series.times, ...this.what.lines.map((line) => values(series.column(line.name), line))];
    if (!this.plot) {
      this.plot = new uPlot(this.options(), data, this.place);
      const { over } = this.plot;
      over.addEventListener("click", ({ clientX }) => {
        this.onPick(this.plot.posToVal(clientX - over.getBoundingClientRect().left, "x"));
      });
      this.resized.observe(this.place);
    }
    this.plot.batch(() => {
      this.plot.setData(data, false);
      this.plot.setScale("x", { min: from, max: to });
    });
  }

  options() {
    const [grid, ink] = [colour("grid"), colour("ink-soft")];
    const axis = {
      stroke: ink,
      grid: { stroke: grid, width: 1 },
      ticks: { stroke: grid, width: 1 },
      font: "11px system-ui, sans-serif",
    };
    const logarithmic = this.what.logarithmic;
    const share = this.what.lines.some((line) => line.scale === "share");
    return {
      ...this.size(),
      padding: [10, share ? 0 : SHARE_AXIS, 0, 0],
      legend: { show: false },
      cursor: {
        sync: { key: "moment", setSeries: false },
        drag: { x: false, y: false, click: () => {} }, // nothing is dragged here: each click is one
        points: { size: 5 },
      },
      scales: {
        x: { time: true, auto: false },
        y: logarithmic ? { distr: 3 } : { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.08)] },
        share: { range: [0, 1] },
      },
      axes: [
        { ...axis, size: 26, values: (_plot, ticks) => ticks.map(clock), space: 90 },
        {
          ...axis,
          size: 58,
          values: (_plot, ticks) => ticks.map((tick) => (logarithmic ? duration(tick) : number(tick))),
          ...(logarithmic && DECADES),
        },
        ...(share
          ? [
              {
                ...axis,
                scale: "share",
                side: 1,
                size: SHARE_AXIS,
                grid: { show: false },
                values: (_plot, ticks) => ticks.map(percent),
              },
            ]
          : []),
      ],
      series: [{}, ...this.what.lines.map((line) => this.seriesOf(line))],
      hooks: { draw: [(plot) => this.drawMoment(plot)] },
    };
  }

  seriesOf(line) {
    const stroke = colour(line.colour);
    return {
      label: line.label,
      scale: line.scale ?? "y",
      stroke,
      width: line.width ?? 1.25,
      dash: line.dash,
      fill: line.fill ? stroke.replace(/^rgb\((.*)\)$/, "rgba($1, 0.16)") : undefined,
      paths: line.steps ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: false },
      show: !this.off.has(line.name),
    };
  }

  drawMoment(plot) {
    if (this.moment === null) return;
    const x = plot.valToPos(this.moment, "x", true);
    const { left, top, width, height } = plot.bbox;
    if (x < left || x > left + width) return;
    plot.ctx.save();
    plot.ctx.strokeStyle = colour("accent");
    plot.ctx.lineWidth = 2;
    plot.ctx.setLineDash([]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
    plot.ctx.restore();
  }

  end() {
    this.resized.disconnect();
    this.plot?.destroy();
    this.plot = null;
    this.place.replaceChildren();
  }
}

/** A logarithmic scale has no place for what is not above zero. */
function values(column, line) {
  return line.positive ? column.map((value) => (value > 0 ? value : null)) : column;
}
