// Numbers, durations and times as people read them. A value that is unknown is a dash, never a zero.

export const UNKNOWN = "–";

/** A number in few digits. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return UNKNOWN;
  if (Number.isInteger(value)) return String(value);
  const shown = Math.abs(value) >= 10 ** digits ? Math.round(value) : Number(value.toPrecision(digits));
  return String(shown);
}

/** A share of 1 as a percentage. */
export function percent(value) {
  return value === null || value === undefined ? UNKNOWN : `${Math.round(value * 100)} %`;
}

/** Seconds as the largest two units that tell. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return UNKNOWN;
  const s = Math.max(0, seconds);
  if (s < 1) return `${Math.round(s * 1000)} ms`;
  if (s < 10 && !Number.isInteger(s)) return `${s.toFixed(1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d`;
}

/** How long ago, in whole units. */
export function ago(seconds) {
  return `${duration(Math.max(0, Math.round(seconds)))} ago`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** Unix seconds as a time of day here. */
export function clock(time) {
  return CLOCK.format(time * 1000);
}

/** A rule and its text, out of `RULE: TEXT`. */
export function reasonParts(reason) {
  const at = reason.indexOf(": ");
  return at < 0 ? ["", reason] : [reason.slice(0, at), reason.slice(at + 2)];
}
