// The numbers of one target over time, as the server remembers them and as they come.

const MOST = 7200;

/** Columns by name, all as long as `times`; null is unknown. */
export class Series {
  constructor() {
    this.times = [];
    this.columns = new Map();
  }

  /** Add points at the end, or begin anew with them. */
  take({ times, columns }, first) {
    if (first) {
      this.times = [];
      this.columns.clear();
    }
    const before = this.times.length;
    this.times.push(...times);
    for (const name of Object.keys(columns)) {
      if (!this.columns.has(name)) this.columns.set(name, Array(before).fill(null));
    }
    for (const [name, column] of this.columns) {
      column.push(...(columns[name] ?? Array(times.length).fill(null)));
    }
    const surplus = this.times.length - MOST;
    if (surplus > 0) {
      this.times.splice(0, surplus);
      for (const column of this.columns.values()) column.splice(0, surplus);
    }
  }

  get length() {
    return this.times.length;
  }

  /** A column; all unknown when there is none of that name. */
  column(name) {
    return this.columns.get(name) ?? Array(this.times.length).fill(null);
  }

  /** A value of a column. */
  at(name, i) {
    return this.columns.get(name)?.[i] ?? null;
  }

  /** The index of the last point that is not after a time; 0 when all are. */
  indexAt(time) {
    let [low, high] = [0, this.times.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.times[middle] <= time) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** The names of columns that begin so. */
  names(prefix) {
    return [...this.columns.keys()].filter((name) => name.startsWith(prefix));
  }
}
