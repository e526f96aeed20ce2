// All targets at a glance: a table that is found through by filter, search and order.

import { targetPath } from "./api.js";
import { hear, now } from "./clock.js";
import { h, setAttribute, setText } from "./dom.js";
import { number, UNKNOWN } from "./format.js";
import { bar, scaling, showAge, showReason, showState, troubles } from "./state.js";
import { KeyedTable } from "./table.js";

const RECENT_S = 600;

const FILTERS = {
  all: { title: "All", holds: () => true },
  attention: { title: "Need attention", holds: (row) => troubles(row).length > 0 },
  scaling: { title: "Scaling", holds: scaling },
  changed: { title: "Changed in 10 min", holds: (row) => row.last_change_time > now() - RECENT_S },
};

/** What was chosen stays while one looks at a target and comes back. */
const kept = { filter: "all", search: "", sorted: null };

const count = (name) => (row) => number(row.replicas?.[name]);
const sortBy = (name) => (row) => row.replicas?.[name];

const COLUMNS = [
  { title: "Target", className: "name", heads: true, sort: (row) => row.label, cell: showName },
  { title: "State", className: "state", sort: (row) => row.state, cell: (td, row) => showState(td, row.state) },
  {
    title: "Wanted",
    className: "count",
    hint: "Replicas that were decided",
    sort: sortBy("desired"),
    descending: true,
    text: count("desired"),
  },
  {
    title: "Ready",
    className: "count",
    hint: "Pods that serve",
    sort: sortBy("ready"),
    descending: true,
    text: count("ready"),
  },
  {
    title: "Starting",
    className: "count",
    hint: "Replicas on the way",
    sort: sortBy("starting"),
    descending: true,
    text: count("starting"),
  },
  { title: "Progress", className: "progress", hint: "Ready and starting, against what is wanted", cell: showBar },
  {
    title: "Waiting",
    className: "count",
    hint: "Requests that wait",
    sort: (row) => row.waiting,
    descending: true,
    text: (row) => number(row.waiting),
  },
  {
    title: "Running",
    className: "count",
    hint: "Requests in running batches",
    sort: (row) => row.running,
    descending: true,
    text: (row) => number(row.running),
  },
  {
    title: "Unknown",
    className: "count",
    hint: "Ready pods that could not be read",
    sort: (row) => row.unknown_pods,
    descending: true,
    cell: showUnknown,
  },
  {
    title: "Limits",
    className: "limits",
    text: (row) => (row.replicas ? `${row.replicas.minimum}–${row.replicas.maximum}` : UNKNOWN),
  },
  {
    title: "Last change",
    className: "why",
    sort: (row) => row.last_change_time,
    descending: true,
    ages: true,
    cell: showWhy,
  },
];

/** The page of all targets. `path` is what it listens to. */
export class Overview {
  path = "events";

  constructor() {
    this.data = new Map();
    this.search = h("input", {
      type: "search",
      id: "search",
      placeholder: "Find by name, policy or reason",
      "aria-label": "Find targets by name, policy or reason",
      "aria-keyshortcuts": "/",
      value: kept.search,
      oninput: () => {
        kept.search = this.search.value;
        this.draw();
      },
    });
    this.filters = Object.entries(FILTERS).map(([name, filter]) => this.filter(name, filter));
    this.table = new KeyedTable("Targets", COLUMNS, () => {
      kept.sorted = this.table.sorted;
      this.draw();
    });
    if (kept.sorted) this.table.sortBy(kept.sorted.column);
    if (kept.sorted && kept.sorted.direction !== this.table.sorted?.direction) this.table.sortBy(kept.sorted.column);
    this.table.element.addEventListener("keydown", moveByArrows);
    this.empty = h("p", { class: "empty", role: "status" });
    this.element = h(
      "section",
      { class: "overview" },
      h("h1", { class: "hidden-text" }, "Targets"),
      h(
        "div",
        { class: "tools" },
        h("div", { role: "group", "aria-label": "Show", class: "filters" }, ...this.filters),
        this.search,
      ),
      h("div", { class: "scroll" }, this.table.element),
      this.empty,
    );
  }

  filter(name, filter) {
    const button = h(
      "button",
      { type: "button", "aria-pressed": String(kept.filter === name) },
      filter.title,
      " ",
      h("b", {}, "0"),
    );
    button.addEventListener("click", () => {
      kept.filter = name;
      for (const each of this.filters) each.setAttribute("aria-pressed", String(each === button));
      this.draw();
    });
    return button;
  }

  /** Take in a message of the stream: changed fields by target, and all keys when targets came or went. */
  onEvent(_name, message) {
    hear(message);
    for (const [key, changes] of Object.entries(message.rows)) {
      this.data.set(key, { ...this.data.get(key), ...changes });
    }
    if (message.keys) this.arrange(message.keys);
    this.draw();
  }

  /** Keep the targets of these keys, in their order; name the trigger where a ScaledObject has several. */
  arrange(keys) {
    this.data = new Map(keys.map((key) => [key, this.data.get(key)]));
    const triggers = new Map();
    for (const row of this.data.values()) {
      const name = `${row.namespace}/${row.name}`;
      triggers.set(name, (triggers.get(name) ?? 0) + 1);
    }
    for (const [key, row] of this.data) {
      const several = triggers.get(`${row.namespace}/${row.name}`) > 1;
      const label = `${row.namespace}/${row.name}${several ? ` (${row.trigger})` : ""}`;
      if (label !== row.label) this.data.set(key, { ...row, label, several });
    }
  }

  draw() {
    const rows = [...this.data];
    Object.values(FILTERS).forEach((filter, i) => {
      setText(this.filters[i].lastChild, String(rows.filter(([, row]) => filter.holds(row)).length));
    });
    const words = kept.search.toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter(
      ([, row]) => FILTERS[kept.filter].holds(row) && words.every((word) => textOf(row).includes(word)),
    );
    this.table.show(found);
    this.table.element.hidden = found.length === 0;
    setText(this.empty, found.length ? "" : emptyText(rows.length));
  }

  focus() {
    document.title = "vllm-scaler";
  }

  /** Put the keyboard where the reader came from. */
  focusOn(target) {
    const link = this.table.element.querySelector(`a[href="${CSS.escape(address(target))}"]`);
    link?.focus();
  }

  onKey(event) {
    if (event.key !== "/") return;
    event.preventDefault();
    this.search.focus();
  }

  end() {}
}

/** The address of a target's own page. */
export function address({ namespace, name, trigger, several }) {
  return `#/${targetPath({ namespace, name }, several ? `/${trigger}` : "").slice("targets/".length)}`;
}

function showName(td, row) {
  if (!td.firstChild) td.append(h("a", {}));
  setText(td.firstChild, row.label);
  setAttribute(td.firstChild, "href", address(row));
}

function showBar(td, row) {
  if (!row.replicas) return;
  if (!td.bar) td.append((td.bar = bar()).element);
  td.bar.show(row.replicas);
}

function showUnknown(td, row) {
  setText(td, number(row.unknown_pods));
  td.classList.toggle("bad", row.unknown_pods > 0);
}

/** What is wrong, or else the age and the reason of the last change. */
function showWhy(td, row) {
  if (!td.firstChild) td.append(h("span", { class: "age" }), h("span", {}), h("span", {}));
  const [age, wrong, reason] = td.children;
  if (td.shownRow === row) {
    if (age.shownText) showAge(age, row.last_change_time);
    return;
  }
  td.shownRow = row;
  const problems = troubles(row).join("; ");
  const changed = !problems && row.last_change;
  td.classList.toggle("bad", problems !== "");
  setText(wrong, problems);
  if (changed) showAge(age, row.last_change_time);
  else setText(age, "");
  showReason(reason, problems ? "" : changed || (row.replicas ? "no change yet" : "no decision yet"));
  setAttribute(td, "title", wrong.textContent + reason.textContent);
}

function textOf(row) {
  return [row.label, row.policy, row.state, row.last_change, ...troubles(row)].join(" ").toLowerCase();
}

function emptyText(total) {
  if (total) return "None of the targets is like that now.";
  return "No targets yet: one begins when a ScaledObject names this scaler, or when KEDA first calls.";
}

/** Arrow keys go from one target to the next. */
function moveByArrows(event) {
  const step = {
    ArrowDown: "nextElementSibling",
    ArrowUp: "previousElementSibling",
    j: "nextElementSibling",
    k: "previousElementSibling",
  }[event.key];
  const next = step && event.target.closest("tr")?.[step];
  if (!next) return;
  event.preventDefault();
  next.querySelector("a, button")?.focus();
}
