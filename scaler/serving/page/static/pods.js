// The pods of a target at one decision, with what each page said.

import { h, setText } from "./dom.js";
import { duration, number, percent } from "./format.js";
import { KeyedTable } from "./table.js";

const COLUMNS = [
  { title: "Pod", className: "name", heads: true, sort: (pod) => pod.pod, text: (pod) => pod.pod },
  { title: "Phase", className: "state", sort: (pod) => pod.phase, text: (pod) => pod.phase },
  {
    title: "For",
    className: "count",
    sort: (pod) => pod.phase_seconds,
    descending: true,
    text: (pod) => duration(pod.phase_seconds),
  },
  {
    title: "Waiting",
    className: "count",
    sort: (pod) => pod.waiting,
    descending: true,
    text: (pod) => number(pod.waiting),
  },
  {
    title: "Running",
    className: "count",
    sort: (pod) => pod.running,
    descending: true,
    text: (pod) => number(pod.running),
  },
  {
    title: "KV cache",
    className: "count",
    sort: (pod) => pod.kv_cache_usage,
    descending: true,
    text: (pod) => percent(pod.kv_cache_usage),
  },
  { title: "Unknown because", className: "why", sort: (pod) => pod.unknown || null, cell: showUnknown },
];

/** The table of pods; `show` fills it from an explanation. */
export class Pods {
  constructor() {
    this.pods = [];
    this.table = new KeyedTable("Pods, with what each page said", COLUMNS, () => this.draw());
    this.title = h("h2", {}, "Pods");
    this.element = h(
      "section",
      { class: "pods", "aria-label": "Pods" },
      this.title,
      h("div", { class: "scroll" }, this.table.element),
    );
  }

  show({ pods }) {
    this.pods = pods;
    this.draw();
  }

  draw() {
    setText(this.title, `Pods (${this.pods.length})`);
    this.table.show(this.pods.map((pod) => [pod.pod, pod]));
  }
}

function showUnknown(td, pod) {
  setText(td, pod.unknown);
  td.classList.toggle("bad", Boolean(pod.unknown));
}
