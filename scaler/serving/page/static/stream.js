// Server-sent events by fetch, which unlike EventSource can show a token and knows why it was refused.
// A line that broke or went silent is taken up again, later and later; a hidden page lets it go.

import { ask, Refused } from "./api.js";

const SILENCE_MS = 15_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

/**
 * Listen to `path`. `onEvent(name, data)` gets each event; `onState(state, detail)` hears `live`, `waiting` (detail:
 * seconds until the next try, or the server's refusal) and `token` (one is needed). Returns a function that ends it.
 */
export function listen(path, onEvent, onState) {
  let ended = false;
  let abort = new AbortController();
  let failures = 0;
  let wake = () => {};

  async function run() {
    while (!ended) {
      if (document.hidden) await new Promise((resolve) => (wake = resolve));
      if (ended) return;
      abort = new AbortController();
      try {
        await read(path, abort, (name, data) => {
          failures = 0;
          onState("live");
          try {
            onEvent(name, data);
          } catch (error) {
            reportError(error); // a fault of the page, not of the line
          }
        });
      } catch (error) {
        if (ended) return;
        if (error instanceof Refused && error.status === 401) {
          onState("token", error.message);
          return;
        }
        if (document.hidden) continue;
        const wait = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures++) * (0.75 + Math.random() / 2);
        onState(
          "waiting",
          error instanceof Refused ? error.message : `no answer, next try in ${Math.ceil(wait / 1000)} s`,
        );
        await new Promise((resolve) => {
          wake = resolve;
          setTimeout(resolve, wait);
        });
      }
    }
  }

  const visibility = () => (document.hidden ? abort.abort() : wake());
  document.addEventListener("visibilitychange", visibility);
  run();
  return () => {
    ended = true;
    document.removeEventListener("visibilitychange", visibility);
    abort.abort();
    wake();
  };
}

/** Read one stream to its end. Rejects when it breaks, ends or says nothing for too long. */
async function read(path, abort, onEvent) {
  let silence = setTimeout(() => abort.abort(), SILENCE_MS);
  try {
    const response = await ask(path, { signal: abort.signal });
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let pending = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new TypeError("the server ended the stream");
      clearTimeout(silence);
      silence = setTimeout(() => abort.abort(), SILENCE_MS);
      const blocks = (pending + value).split("\n\n");
      pending = blocks.pop();
      for (const block of blocks) dispatch(block, onEvent);
    }
  } finally {
    clearTimeout(silence);
  }
}

function dispatch(block, onEvent) {
  const fields = Object.fromEntries(block.split("\n").map((line) => line.split(/: (.*)/s)));
  if (fields.event) onEvent(fields.event, JSON.parse(fields.data));
}
