// The server's clock. Ages are reckoned on it alone, so that a browser whose clock is wrong shows them right.

let heard = null;

/** Take in what the server said of its time: Unix seconds, and how fast they pass. */
export function hear({ time, speed }) {
  heard = { time, speed, at: performance.now() };
}

/** Unix seconds on the server's clock. */
export function now() {
  return heard === null ? Date.now() / 1000 : heard.time + ((performance.now() - heard.at) / 1000) * heard.speed;
}

/** How far this browser's clock is ahead of the server's, in seconds; 0 while the server's is a simulated one. */
export function skew() {
  return heard === null || heard.speed !== 1 ? 0 : Date.now() / 1000 - now();
}
