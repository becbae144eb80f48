"use strict";
// Has what every page's script needs: numbers as people read them, and elements.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

// Writes bytes as the terminal does: two decimals, rounded down.
function sizeText(bytes) {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return unit === 0 ? `${bytes} B` : `${(Math.floor(value * 100) / 100).toFixed(2)} ${UNITS[unit]}`;
}

function timeText(microseconds) {
  if (microseconds < 1e3) return `${microseconds} us`;
  if (microseconds < 1e6) return `${(microseconds / 1e3).toFixed(1)} ms`;
  return `${(microseconds / 1e6).toFixed(3)} s`;
}

// Writes percent as the page's tables do: a part that is not zero is never "0 %", less than all is never "100 %".
function percentText(part, whole) {
  if (!(whole > 0)) return "-";
  if (part === 0 || part === whole) return part === 0 ? "0 %" : "100 %";
  const percent = 100 * part / whole;
  return percent < 1 ? "<1 %" : `${Math.min(99, Math.round(percent))} %`;
}

// Writes "1 block", "2 blocks".
function countText(count, one) { return `${count} ${one}${count === 1 ? "" : "s"}`; }

function summed(differences) {
  let sum = 0;
  return Float64Array.from(differences, (d) => (sum += d));
}

// Sets text only as text, never as markup, because much of it comes from files that nobody vouches for.
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const PHASE_HUES = {"forward": 217, "backward": 26, "optimizer": 265, "loading": 187, "evaluation": 150, "compiling": 330};

function isDark() { return matchMedia("(prefers-color-scheme: dark)").matches; }

function phaseColor(phase) {
  return phase in PHASE_HUES ? `hsl(${PHASE_HUES[phase]} 60% ${isDark() ? 52 : 62}%)` : `hsl(220 8% ${isDark() ? 45 : 70}%)`;
}

// A color of page.css.
function ink(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

function dot(color) {
  const made = element("i", {class: "dot"});
  made.style.background = color;
  return made;
}

// Shortens a path at its beginning, because its end says more.
function shorter(text) { return text.length > 60 ? `...${text.slice(-57)}` : text; }

function head(...names) {
  return element("thead", {}, element("tr", {}, ...names.map((name) =>
    element("th", ["owner", "address", "what", "when"].includes(name) ? {} : {class: "number"}, name))));
}
