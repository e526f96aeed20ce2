// Light, dark or as the system has it. Loaded before the page is drawn, so that it does not flash.
"use strict";

const THEMES = { auto: "Auto", light: "Light", dark: "Dark" };

/** The chosen theme; `auto` where the browser keeps nothing for us. */
function chosenTheme() {
  try {
    const kept = localStorage.getItem("theme");
    return kept in THEMES ? kept : "auto";
  } catch {
    return "auto";
  }
}

/** Use a theme, and tell those who draw by themselves. */
function useTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("theme", theme);
  } catch {
    // It holds for this visit.
  }
  window.dispatchEvent(new Event("themechange"));
}

useTheme(chosenTheme());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
  window.dispatchEvent(new Event("themechange")),
);
document.addEventListener("DOMContentLoaded", () => {
  const button = document.getElementById("theme");
  const label = () => {
    button.textContent = THEMES[document.documentElement.dataset.theme];
    button.setAttribute("aria-label", `Theme: ${button.textContent}`);
    button.title = "Light, dark, or as the system has it";
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    useTheme(names[(names.indexOf(document.documentElement.dataset.theme) + 1) % names.length]);
    label();
  });
  label();
});
