// Charts over the same time, and the moment in it that one looks at: picked by click, by slider or by keyboard.

import { Chart, chartsOf } from "./charts.js";
import { h, setAttribute, setText } from "./dom.js";
import { ago, clock, number, UNKNOWN } from "./format.js";
import { now } from "./clock.js";

const SPANS = { "5 min": 300, "15 min": 900, "1 h": 3600 };
const QUANTILES = ["p50", "p95", "p99"];

const kept = { span: "15 min", quantile: "p95" };

/** The charts of one target. `onMoment(time)` hears what moment is looked at; null is the present. */
export class Timeline {
  constructor(series, onMoment) {
    this.series = series;
    this.onMoment = onMoment;
    this.moment = null;
    this.charts = [];
    this.place = h("div", { class: "charts" });
    this.slider = h("input", {
      type: "range",
      id: "moment",
      min: 0,
      max: 0,
      "aria-label": "Moment to look at",
      oninput: () => {
        const [first, last] = this.indices();
        const i = Number(this.slider.value);
        this.look(i >= last ? null : this.series.times[Math.max(first, i)]);
      },
    });
    this.when = h("output", { for: "moment" });
    this.live = h("button", { type: "button", class: "live", onclick: () => this.look(null) }, "Back to now");
    this.element = h(
      "section",
      { class: "timeline", "aria-label": "Over time" },
      h(
        "div",
        { class: "tools" },
        h("h2", {}, "Over time"),
        this.choice("Span", Object.keys(SPANS), "span"),
        this.choice("Latency quantile", QUANTILES, "quantile"),
      ),
      this.place,
      h("div", { class: "moment" }, this.slider, this.when, this.live),
    );
    this.redraw = () => this.rebuild();
    window.addEventListener("themechange", this.redraw);
  }

  choice(label, names, key) {
    const buttons = names.map((name) =>
      h("button", { type: "button", "aria-pressed": String(kept[key] === name) }, name),
    );
    buttons.forEach((button, i) =>
      button.addEventListener("click", () => {
        kept[key] = names[i];
        buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
        this.rebuild();
      }),
    );
    return h("div", { role: "group", "aria-label": label, class: "filters" }, ...buttons);
  }

  /** Look at a moment (Unix seconds), or at the present. */
  look(moment) {
    this.moment = moment;
    this.draw();
    this.onMoment(moment);
  }

  /** Make the charts anew: for other lines, or for other colours. */
  rebuild() {
    for (const chart of this.charts) chart.end();
    this.lines = this.series.names("demand.").join();
    this.charts = chartsOf(this.series, kept.quantile).map((what) => new Chart(what, (time) => this.pick(time)));
    this.place.replaceChildren(...this.charts.map((chart) => chart.element));
    this.draw();
  }

  pick(time) {
    const i = this.series.indexAt(time);
    this.look(i >= this.series.length - 1 ? null : this.series.times[i]);
  }

  /** The first and the last point of the span that is shown. */
  indices() {
    const last = this.series.length - 1;
    const from = (this.series.times[last] ?? 0) - SPANS[kept.span];
    const first = this.series.indexAt(from);
    return [this.series.times[first] < from && first < last ? first + 1 : first, last];
  }

  draw() {
    if (!this.series.length) return;
    if (this.lines !== this.series.names("demand.").join()) {
      this.rebuild();
      return;
    }
    const [first, last] = this.indices();
    const end = this.series.times[last];
    const begin = Math.max(end - SPANS[kept.span], this.series.times[first]);
    const i = this.moment === null ? last : this.series.indexAt(this.moment);
    for (const chart of this.charts) chart.show(this.series, [Math.min(begin, end - 10), end], i, this.moment);
    this.slider.min = first;
    this.slider.max = last;
    this.slider.value = i;
    setAttribute(this.slider, "aria-valuetext", this.words(i));
    const time = this.series.times[i];
    setText(this.when, this.moment === null ? "now" : `${clock(time)}, ${ago(now() - time)}`);
    this.live.hidden = this.moment === null;
  }

  /** A moment in words. */
  words(i) {
    const value = (name) => number(this.series.at(name, i)).replace(UNKNOWN, "unknown");
    const when = this.moment === null ? "now" : clock(this.series.times[i]);
    return `${when}: ${value("desired")} wanted, ${value("ready")} ready, ${value("waiting")} waiting`;
  }

  /** Go some points back or forth. */
  step(points) {
    const [first, last] = this.indices();
    const i = this.moment === null ? last : this.series.indexAt(this.moment);
    const next = Math.min(last, Math.max(first, i + points));
    this.look(next >= last ? null : this.series.times[next]);
  }

  end() {
    window.removeEventListener("themechange", this.redraw);
    for (const chart of this.charts) chart.end();
  }
}
