// The page as a whole: which view the address names, the line to the server, the token, and keys that work everywhere.

import { keepToken } from "./api.js";
import { skew } from "./clock.js";
import { Detail } from "./detail.js";
import { h, setText } from "./dom.js";
import { duration } from "./format.js";
import { Overview } from "./overview.js";
import { listen } from "./stream.js";

const SKEW_S = 5;

const main = document.getElementById("main");
const line = document.getElementById("line");
const notes = document.getElementById("notes");
const foot = document.getElementById("foot");

let view = null;
let stop = () => {};

/** The target in the address, as `#/NAMESPACE/NAME` or `#/NAMESPACE/NAME/TRIGGER`; null for the list of all. */
function addressed() {
  const [namespace, name, trigger = ""] = location.hash.replace(/^#\//, "").split("/").map(unescaped);
  return namespace && name ? { namespace, name, trigger } : null;
}

function unescaped(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part; // no escape at all
  }
}

function open() {
  if (location.hash && !location.hash.startsWith("#/")) return; // a place within the page
  const before = view;
  const target = addressed();
  stop();
  view?.end();
  view = target ? new Detail(target) : new Overview();
  main.replaceChildren(view.element);
  view.focus();
  let cameBack = !target && before?.target;
  stop = listen(
    view.path,
    (name, message) => {
      view.onEvent(name, message);
      showHead(message);
      if (cameBack) view.focusOn(cameBack);
      cameBack = null;
    },
    showLine,
  );
}

/** How the line to the server stands. */
function showLine(state, detail) {
  line.dataset.state = state;
  document.body.classList.toggle("cut", state === "waiting");
  if (state === "live") setText(line, "live");
  if (state === "waiting") setText(line, `not connected: ${detail}`);
  if (state === "token") askForToken(detail);
}

function askForToken(why) {
  setText(line, "a token is needed");
  const input = h("input", {
    type: "password",
    autocomplete: "current-password",
    id: "token",
    required: true,
    "aria-describedby": "why",
  });
  const form = h(
    "form",
    { class: "notice" },
    h("label", { for: "token" }, "Token"),
    input,
    h("button", {}, "Look"),
    h("p", { id: "why" }, why),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    keepToken(input.value.trim());
    open();
  });
  main.replaceChildren(form);
  input.focus();
}

/** What stands above all targets. */
function showHead({ not_ready, shadow, speed, version }) {
  const found = [];
  if (not_ready) found.push(not_ready);
  if (shadow) found.push("shadow: KEDA is told the present count");
  if (speed !== 1) found.push(`simulated time, ${speed}×`);
  setText(notes, found.join(" · "));
  const off = skew();
  const where = off > 0 ? "ahead of" : "behind";
  const clocks = `this browser's clock is ${duration(Math.abs(off))} ${where} the server's, whose times are shown`;
  setText(foot, [`vllm-scaler ${version}`, ...(Math.abs(off) < SKEW_S ? [] : [clocks])].join(" · "));
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=range]), select, textarea");
  if (event.key === "Escape" && view?.target) location.hash = "#/";
  else if (!typing && !event.ctrlKey && !event.metaKey && !event.altKey) view?.onKey(event);
});
window.addEventListener("hashchange", open);
open();
