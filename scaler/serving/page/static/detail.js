// One target: what it wants and why, how it came to that, its pods and its configuration. At any remembered moment.

import { askJson, targetPath } from "./api.js";
import { hear, now } from "./clock.js";
import { Configuration } from "./configuration.js";
import { h, setAttribute, setText } from "./dom.js";
import { Facts } from "./facts.js";
import { ago, clock, duration } from "./format.js";
import { Pods } from "./pods.js";
import { Series } from "./series.js";
import { showReason, showState } from "./state.js";
import { Timeline } from "./timeline.js";

const PICK_MS = 80;

/** The page of one target. `path` is what it listens to. */
export class Detail {
  constructor(target) {
    this.target = target;
    this.query = target.trigger ? `?trigger=${encodeURIComponent(target.trigger)}` : "";
    this.path = targetPath(target, `/events${this.query}`);
    this.series = new Series();
    this.latest = null;
    this.asked = 0;
    this.title = h("h1", {}, `${target.namespace}/${target.name}`);
    this.state = h("span", { class: "state" });
    this.policy = h("span", { class: "policy" });
    this.reasonTitle = h("span", {});
    this.reason = h("span", {});
    this.unchanged = h("p", { class: "change" }, "No change of the count is remembered.");
    this.changeAge = h("span", { class: "age" });
    this.changeText = h("span", {});
    this.change = h("p", { class: "change" }, "Last change ", this.changeAge, ": ", this.changeText);
    this.said = h("p", { class: "hidden-text", role: "status" });
    this.trouble = h("ul", { class: "trouble", "aria-label": "To look at" });
    this.facts = new Facts();
    this.timeline = new Timeline(this.series, (moment) => this.look(moment));
    this.storyTitle = h("h2", {}, "How it was decided");
    this.story = h("pre", { class: "story", tabindex: 0, "aria-label": "How it was decided" });
    this.copy = h(
      "button",
      { type: "button", class: "quiet", onclick: () => navigator.clipboard.writeText(this.told) },
      "Copy",
    );
    this.copy.hidden = !navigator.clipboard;
    this.pods = new Pods();
    this.configuration = new Configuration();
    this.missing = h("p", { class: "notice" }, "…");
    this.body = h(
      "div",
      { class: "body" },
      this.trouble,
      h("div", { class: "because" }, h("p", {}, this.reasonTitle, " ", this.reason), this.change, this.unchanged),
      this.facts.element,
      h(
        "div",
        { class: "columns" },
        this.timeline.element,
        h(
          "section",
          { class: "telling", "aria-label": "How it was decided" },
          h("div", { class: "tools" }, this.storyTitle, this.copy),
          this.story,
        ),
      ),
      this.pods.element,
      this.configuration.element,
    );
    this.body.hidden = true;
    this.element = h(
      "article",
      { class: "target" },
      h("nav", {}, h("a", { href: "#/" }, "← All targets")),
      h("div", { class: "title" }, this.title, this.state, this.policy),
      this.said,
      this.missing,
      this.body,
    );
  }

  focus() {
    document.title = `${this.target.namespace}/${this.target.name} – vllm-scaler`;
    document.getElementById("main").focus();
    window.scrollTo(0, 0);
  }

  onEvent(name, message) {
    hear(message);
    if (name === "missing") this.miss(message.error);
    else if (name === "target") this.take(message);
    if (this.latest && this.timeline.moment === null) this.showChange(this.latest); // its age grows
  }

  miss(error) {
    this.latest = null;
    this.body.hidden = true;
    this.missing.hidden = false;
    setText(this.missing, error);
    setText(this.state, "");
    setText(this.policy, "");
  }

  take({ summary, explanation, points, first, configuration }) {
    this.series.take(points, first);
    if (configuration) this.configuration.show(configuration);
    showState(this.state, summary.state);
    setText(this.policy, `policy ${summary.policy}`);
    const wrong = [summary.reason, ...summary.warnings].filter(Boolean);
    this.trouble.hidden = wrong.length === 0;
    if (this.trouble.textContent !== wrong.join(""))
      this.trouble.replaceChildren(...wrong.map((text) => h("li", {}, text)));
    this.missing.hidden = explanation !== null;
    this.body.hidden = explanation === null;
    if (explanation === null) {
      setText(this.missing, summary.reason || "No decision yet.");
      return;
    }
    if (this.latest && this.latest.last_change_time !== explanation.last_change_time) {
      setText(this.said, `${summary.name} now wants ${explanation.replicas.desired}: ${explanation.last_change}`);
    }
    this.latest = explanation;
    if (this.timeline.moment === null) this.show(explanation);
    this.timeline.draw();
  }

  /** Look at a moment (Unix seconds): what is remembered of it is asked for. */
  look(moment) {
    clearTimeout(this.picking);
    const turn = ++this.asked;
    if (moment === null) {
      if (this.latest) this.show(this.latest);
      return;
    }
    this.picking = setTimeout(async () => {
      try {
        const query = new URLSearchParams({
          time: moment,
          ...(this.target.trigger && { trigger: this.target.trigger }),
        });
        const explanation = await askJson(targetPath(this.target, `?${query}`));
        if (turn === this.asked) this.show(explanation);
      } catch (error) {
        if (turn === this.asked) this.tell(`This moment cannot be told: ${error.message}`);
      }
    }, PICK_MS);
  }

  show(explanation) {
    const past = this.timeline.moment !== null;
    setAttribute(this.body, "data-past", past ? "" : null);
    setText(this.reasonTitle, past ? "Then" : "Now");
    showReason(this.reason, explanation.why);
    this.showChange(explanation);
    this.facts.show(explanation);
    this.pods.show(explanation);
    setText(this.storyTitle, past ? `How it was decided at ${clock(explanation.time)}` : "How it was decided");
    this.tell(explanation.story);
  }

  /** Show a story, each line a block, so that what wraps is indented. */
  tell(text) {
    if (this.told === text) return;
    this.told = text;
    this.story.replaceChildren(...text.split("\n").map((line) => h("span", {}, line)));
  }

  showChange(explanation) {
    this.change.hidden = !explanation.last_change;
    this.unchanged.hidden = !this.change.hidden;
    if (this.change.hidden) return;
    const seconds = (this.timeline.moment === null ? now() : explanation.time) - explanation.last_change_time;
    setText(
      this.changeAge,
      this.timeline.moment === null ? ago(seconds) : `${duration(Math.max(0, Math.round(seconds)))} before`,
    );
    showReason(this.changeText, explanation.last_change);
  }

  onKey(event) {
    if (event.target.closest("main *")) return; // sliders, tables and texts have arrow keys of their own
    if (event.key === "ArrowLeft") this.timeline.step(-1);
    else if (event.key === "ArrowRight") this.timeline.step(1);
    else if (event.key === "End") this.timeline.look(null);
    else return;
    event.preventDefault();
  }

  end() {
    clearTimeout(this.picking);
    this.timeline.end();
  }
}
