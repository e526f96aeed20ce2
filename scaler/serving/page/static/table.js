// A table whose rows have keys: a row that stays is changed in place, and only the cells that differ.

import { h, setText } from "./dom.js";

/**
 * `columns` are {title, className, hint, sort, cell}: `cell(td, row)` fills a cell; without it, `text(row)` does.
 * With `sort(row)`, a number or a string, the header is a button. A column that `ages` is filled anew each time; one
 * that `heads` names its row.
 */
export class KeyedTable {
  constructor(caption, columns, onSort = () => {}) {
    this.columns = columns;
    this.rows = new Map();
    this.sorted = null;
    this.onSort = onSort;
    this.body = h("tbody", { role: "rowgroup" });
    this.headers = columns.map((column) => this.header(column));
    this.element = h(
      "table",
      { role: "table" },
      h("caption", { class: "hidden-text" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...this.headers)),
      this.body,
    );
  }

  header(column) {
    const attributes = { scope: "col", role: "columnheader", class: column.className, title: column.hint };
    if (!column.sort) return h("th", attributes, column.title);
    return h("th", attributes, h("button", { type: "button", onclick: () => this.sortBy(column) }, column.title));
  }

  /** Sort by a column: first its natural way, then the other, then as given. */
  sortBy(column) {
    const first = column.descending ? -1 : 1;
    if (this.sorted?.column !== column) this.sorted = { column, direction: first };
    else this.sorted = this.sorted.direction === first ? { column, direction: -first } : null;
    this.columns.forEach((each, i) => {
      const direction = this.sorted?.column === each ? this.sorted.direction : 0;
      if (direction) this.headers[i].setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else this.headers[i].removeAttribute("aria-sort");
    });
    this.onSort();
  }

  /** Show exactly these [key, row] pairs, in their order or the one that was asked for. */
  show(entries) {
    const ordered = this.sorted ? [...entries].sort(this.comparison()) : entries;
    const keys = new Set(ordered.map(([key]) => key));
    for (const [key, row] of this.rows) {
      if (!keys.has(key)) {
        row.remove();
        this.rows.delete(key);
      }
    }
    let place = this.body.firstElementChild;
    for (const [key, data] of ordered) {
      const row = this.update(key, data);
      if (row === place) place = place.nextElementSibling;
      else this.body.insertBefore(row, place);
    }
  }

  comparison() {
    const { column, direction } = this.sorted;
    return ([, a], [, b]) => {
      const [x, y] = [column.sort(a), column.sort(b)];
      if (x === y) return 0;
      if (x === null || x === undefined) return 1; // unknown comes last, whichever way
      if (y === null || y === undefined) return -1;
      return (x < y ? -1 : 1) * direction;
    };
  }

  /** Fill the row of a key, which is made when it is new. */
  update(key, data) {
    let row = this.rows.get(key);
    if (!row) {
      row = h("tr", { role: "row" }, ...this.columns.map((column) => cellOf(column)));
      this.rows.set(key, row);
    }
    this.columns.forEach((column, i) => {
      if (row.shown === data && !column.ages) return;
      if (column.cell) column.cell(row.cells[i], data);
      else setText(row.cells[i], column.text(data));
    });
    row.shown = data;
    return row;
  }
}

function cellOf(column) {
  const attributes = { class: column.className, "data-title": column.title };
  if (column.heads) return h("th", { ...attributes, scope: "row", role: "rowheader" });
  return h("td", { ...attributes, role: "cell" });
}
