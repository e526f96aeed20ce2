// How a target stands, in words and marks; never in colour alone.

import { h, setAttribute, setText } from "./dom.js";
import { clock, ago, reasonParts } from "./format.js";
import { now } from "./clock.js";

const MARKS = { ACTIVE: "●", IDLE: "○", WAITING: "◌", STALE: "▲", INVALID: "✕", CAPACITY_BLOCKED: "■" };

/** Fill an element with a state's mark and word. */
export function showState(element, state) {
  setText(element, `${MARKS[state] ?? "?"} ${(state ?? "unknown").toLowerCase().replace("_", "-")}`);
  setAttribute(element, "data-state", state);
}

/** What an operator should look at in a line of the list, one text each; none when all is well. */
export function troubles(row) {
  const found = [...(row.warnings ?? [])];
  if (row.reason) found.unshift(row.reason);
  if (row.unknown_pods) found.push(`${row.unknown_pods} of the ready pods cannot be read`);
  if (row.replicas?.unschedulable) found.push(`no node takes ${row.replicas.unschedulable} of the pods`);
  return found;
}

/** Whether replicas are on their way, or should be. */
export function scaling({ replicas }) {
  return Boolean(replicas) && (replicas.starting > 0 || replicas.desired !== replicas.ready);
}

/** Fill an element with a reason: the rule stands out. */
export function showReason(element, reason) {
  if (element.shownReason === reason) return;
  element.shownReason = reason;
  const [rule, text] = reasonParts(reason);
  element.replaceChildren(...(rule ? [h("b", { class: "rule" }, `${rule}:`), " "] : []), text);
}

/** Fill an element with the age of a moment; its time of day is in the hint. */
export function showAge(element, time) {
  setText(element, ago(now() - time));
  if (element.shownTime === time) return;
  element.shownTime = time;
  element.title = clock(time);
}

/** Replicas as a bar: ready, starting, and a mark at what is wanted. The numbers stand beside it for all readers. */
export function bar() {
  const [ready, starting, wanted] = [
    h("i", { class: "ready" }),
    h("i", { class: "starting" }),
    h("i", { class: "wanted" }),
  ];
  const element = h("span", { class: "bar", "aria-hidden": "true" }, ready, starting, wanted);
  return {
    element,
    show(replicas) {
      const full = Math.max(1, replicas.desired, replicas.ready + replicas.starting);
      ready.style.width = `${(replicas.ready / full) * 100}%`;
      starting.style.width = `${(replicas.starting / full) * 100}%`;
      wanted.style.left = `${(replicas.desired / full) * 100}%`;
    },
  };
}
