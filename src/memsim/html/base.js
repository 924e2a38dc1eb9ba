// SPDX-License-Identifier: Apache-2.0
// What the other scripts stand on: figures as text, elements, colours, the tip.
// All text goes in by textContent or onto a canvas: nothing is ever markup.
"use strict";

const find = (id) => document.getElementById(id);

function element(name, text, className) {
  const e = document.createElement(name);
  if (text !== undefined)
    e.textContent = text;
  if (className)
    e.className = className;
  return e;
}

function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = Math.abs(bytes), unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return (bytes < 0 ? "−" : "") + value.toFixed(unit ? 2 : 0) + " " +
    units[unit];
}

function formatTime(ns) {
  if (ns < 1e6)
    return (ns / 1e3).toFixed(0) + " µs";
  return ns < 1e9 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e9).toFixed(2) +
    " s";
}

const formatPercent = (part, whole) =>
  whole ? (100 * part / whole).toFixed(1) + "%" : "";

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const total = (categories) => sum(Object.values(categories || {}));

// Paul Tol's schemes "muted" and "light" give hues that also those see apart
// who are colour-blind: https://personal.sron.nl/~pault/.
const COLORS = {
  parameter: "#4477aa", buffer: "#88ccee", gradient: "#cc6677",
  activation: "#ddaa33", temporary: "#aa4499", optimizer: "#228866",
  input: "#999933", communication: "#882255", workspace: "#77aadd",
  cached: "#9aa3ad", context: "#66707a", other: "#bbaa99",
};
const SPARE = ["#6655bb", "#44aaaa", "#bb7744", "#7f9f3f"];
const NO_MODULE = "(no module)";

const channels = (color) => [1, 3, 5].map((i) =>
  parseInt(color.slice(i, i + 2), 16));

const lighter = (color) => "#" + channels(color).map((c) =>
  Math.round(c * 0.65 + 89).toString(16).padStart(2, "0")).join("");

// Black or white, whichever is easier to read on COLOR (Rec. 709 luma).
function inkOn(color) {
  const [red, green, blue] = channels(color);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 120 ? "#000" : "#fff";
}

// "parameter (sharded)" and the like are shades of their first word.
function colorOf(category) {
  const first = category.split(/[ _(]/)[0];
  if (Object.hasOwn(COLORS, category))
    return COLORS[category];
  if (Object.hasOwn(COLORS, first))
    return lighter(COLORS[first]);
  return SPARE[[...category].reduce((n, c) => n + c.codePointAt(0), 0) %
    SPARE.length];
}

// Categories in one order everywhere: the table's, then the rest by name.
function sortCategories(names) {
  const order = Object.keys(COLORS);
  const rank = (name) => {
    const i = order.indexOf(name.split(/[ _(]/)[0]);
    return i < 0 ? order.length : i;
  };
  return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function themeColor(name) {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name).trim();
}

function showTip(text, event) {
  const tip = find("tip");
  if (tip.textContent !== text)
    tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - box.width - 4);
  const below = event.clientY + 18;
  const y = below + box.height > innerHeight
    ? event.clientY - box.height - 10 : below;
  tip.style.transform = `translate(${Math.max(x, 4)}px, ${Math.max(y, 4)}px)`;
}

const hideTip = () => {
  find("tip").hidden = true;
};

// A drawing context in CSS pixels, whatever the screen's resolution.
function drawOn(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function place(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function cut(context, text, width) {
  if (context.measureText(text).width <= width)
    return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width)
      low = middle;
    else
      high = middle - 1;
  }
  return low ? text.slice(0, low) + "…" : "";
}
