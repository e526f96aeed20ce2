// The configuration in force, with where each value comes from.

import { h } from "./dom.js";
import { KeyedTable } from "./table.js";

const COLUMNS = [
  { title: "Key", className: "name", heads: true, text: (row) => row.key },
  { title: "Value", className: "value", text: (row) => row.value || "left out" },
  { title: "From", className: "origin", text: (row) => row.origin },
  { title: "Meaning", className: "meaning", text: (row) => row.meaning },
];

/** The table of keys, those that were set first; `show` fills it. */
export class Configuration {
  constructor() {
    this.table = new KeyedTable("Configuration in force", COLUMNS);
    this.element = h(
      "details",
      { class: "configuration" },
      h("summary", {}, h("h2", {}, "Configuration in force")),
      h(
        "div",
        { class: "scroll", role: "region", tabindex: 0, "aria-label": "Configuration in force" },
        this.table.element,
      ),
    );
  }

  show(settings) {
    const isSet = (row) => row.origin !== "default";
    const ordered = [...settings.filter(isSet), ...settings.filter((row) => !isSet(row))];
    this.table.show(ordered.map((row) => [row.key, row]));
    for (const row of ordered) this.table.rows.get(row.key).classList.toggle("default", !isSet(row));
  }
}
