// The numbers of one decision, as a row of tiles.

import { h, setAttribute, setText } from "./dom.js";
import { duration, number, percent } from "./format.js";

/** Each: title, its value in an explanation, and what stands below it. */
const FACTS = [
  [
    "Wanted",
    (e) => number(e.replicas.desired),
    (e) => `of ${e.replicas.minimum}–${e.replicas.maximum}${e.replicas.warm ? `, room for ${e.replicas.warm} more` : ""}`,
    "main",
  ],
  ["Ready", (e) => number(e.replicas.ready), (e) => `${e.replicas.requested} requested`],
  [
    "Starting",
    (e) => number(e.replicas.starting),
    (e) => starts(e.start_up),
  ],
  [
    "Unknown",
    (e) => number(e.load.unknown_pods),
    (e) => `of ${e.replicas.ready} ready pods`,
    (e) => (e.load.unknown_pods ? "bad" : ""),
  ],
  [
    "Unschedulable",
    (e) => number(e.replicas.unschedulable),
    (e) =>
      e.replicas.unschedulable
        ? `for ${duration(e.replicas.unschedulable_s)}, lacking ${e.replicas.lacks}`
        : `${e.replicas.terminating} terminating`,
    (e) => (e.replicas.unschedulable ? "bad" : ""),
  ],
  ["Waiting", (e) => number(e.load.waiting), () => "requests"],
  ["Running", (e) => number(e.load.running), (e) => `KV cache ${percent(e.load.kv_cache_usage)}`],
  ["Arrivals", (e) => number(e.load.arrival_rate), () => "requests/s"],
  ["First token", (e) => duration(e.load.latency.ttft?.p95), () => "p95"],
  ["KEDA is told", (e) => number(e.emission.value, 6), (e) => `HPA arrives at ${e.emission.arrives_at}`],
];

/** How long a start takes, and with a new node where one was ever waited for. */
function starts(startUp) {
  if (!startUp) return "no start seen";
  if (!startUp.cold) return `takes ${duration(startUp.median)}`;
  const withNode = `${duration(startUp.cold.median)} with a new node`;
  return startUp.warm ? `takes ${duration(startUp.warm.median)}, ${withNode}` : `takes ${withNode}`;
}

/** The tiles; `show` fills them from an explanation. */
export class Facts {
  constructor() {
    this.tiles = FACTS.map(([title]) =>
      h("div", {}, h("dt", {}, title), h("dd", { class: "value" }), h("dd", { class: "below" })),
    );
    this.element = h("dl", { class: "facts" }, ...this.tiles);
  }

  show(explanation) {
    FACTS.forEach(([, value, below, kind = ""], i) => {
      const [, valueOf, belowOf] = this.tiles[i].children;
      setText(valueOf, value(explanation));
      setText(belowOf, below(explanation));
      setAttribute(this.tiles[i], "class", typeof kind === "function" ? kind(explanation) : kind);
    });
    this.tiles.at(-1).title = explanation.emission.note;
  }
}
