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
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = Math.abs(bytes), unit = 0;
  while (value >= 1023.995 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = !unit ? 0 : value >= 99.995 ? 1 : 2;
  return (bytes < 0 ? "−" : "") + value.toFixed(digits) + " " + units[unit];
}

// For an axis: "2 GiB", "1.5 GiB".
const formatRound = (bytes) =>
  formatBytes(bytes).replace(/(\.\d*?)0+ /, "$1 ").replace(". ", " ")
    .replace(/^0 B$/, "0");

function formatTime(ns) {
  if (ns < 1e6)
    return Math.round(ns / 1e3) + " µs";
  return ns < 1e9 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e9).toFixed(2) +
    " s";
}

// For an axis: "100 ms", "1.5 s".
const formatTick = (ns) =>
  ns ? formatTime(ns).replace(/\.0+ |(\.\d)0 /, "$1 ") : "0";

const formatCount = (count) => count.toLocaleString("en");

function formatPercent(part, whole) {
  if (!whole)
    return "";
  const percent = 100 * part / whole;
  return percent > 0 && percent < 0.05 ? "< 0.1%" : percent.toFixed(1) + "%";
}

const plural = (count, word) =>
  `${formatCount(count)} ${word}${count === 1 ? "" : "s"}`;

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
const total = (categories) => sum(Object.values(categories || {}));

// Names may hold anything: line ends and what turns the writing's direction
// are shown as what they are.
const CONTROLS = new RegExp("[\\u0000-\\u001f\\u007f-\\u009f" +
  "\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069]", "g");

function visible(text) {
  return String(text).replace(CONTROLS, (c) =>
    `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

// The beginning and the end of what is too long to read.
function shorten(text, most) {
  const characters = visible(text);
  return characters.length <= most ? characters
    : characters.slice(0, most * 0.6) + " … " +
      characters.slice(-Math.floor(most * 0.4));
}

// Paul Tol's schemes "muted" and "light" give hues that also those see apart
// who are colour-blind: https://personal.sron.nl/~pault/.
const COLORS = {
  parameter: "#4477aa", unsharded_parameter: "#7b9fc6", buffer: "#88ccee",
  gradient: "#cc6677", unsharded_gradient: "#de9aa6", activation: "#ddaa33",
  temporary: "#aa4499", optimizer: "#228866", input: "#999933",
  communication: "#6655bb", workspace: "#77aadd", other: "#bbaa99",
  "smaller blocks": "#99a3ad",
  in_use: "#4477aa", cached: "#a3acb5", context: "#6a747e",
};
const NO_MODULE = "(no module)";
const FREE_INK = {light: "#8b95a1", dark: "#6d7885"};

const colorOf = (category) =>
  Object.hasOwn(COLORS, category) ? COLORS[category] : COLORS.other;
const wordsOf = (category) => visible(category).replaceAll("_", " ");

// Black or white, whichever is easier to read on COLOR (Rec. 709 luma).
function inkOn(color) {
  const [red, green, blue] = [1, 3, 5].map((i) =>
    parseInt(color.slice(i, i + 2), 16));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 115 ? "#000" : "#fff";
}

// Categories in one order everywhere: the table's, then the rest by name.
function sortCategories(names) {
  const order = Object.keys(COLORS);
  const rank = (name) => order.includes(name) ? order.indexOf(name)
    : order.length;
  return [...names].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function themeColor(name) {
  return getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name).trim();
}

function swatch(color) {
  const e = element("span", "", "swatch");
  e.style.background = color;
  return e;
}

// The tip at a point of the window: lines of text, each a string or
// [colour or "", label, value].
function showTip(lines, x, y) {
  const tip = find("tip");
  tip.replaceChildren(...lines.filter(Boolean).map((line) => {
    if (typeof line === "string")
      return element("p", line);
    const [color, label, value] = line, row = element("div");
    row.append(swatch(color || "transparent"), element("span", label),
      element("b", value));
    return row;
  }));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = x + 16 + box.width > innerWidth ? x - box.width - 12 : x + 16;
  const top = Math.min(y + 16, innerHeight - box.height - 6);
  tip.style.transform =
    `translate(${Math.max(left, 4)}px, ${Math.max(top, 4)}px)`;
}

const hideTip = () => {
  find("tip").hidden = true;
};

// A drawing context in CSS pixels, whatever the screen's resolution; or
// `drawOn.pen', where a file is drawn instead.
function drawOn(canvas, width, height) {
  if (drawOn.pen)
    return drawOn.pen;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "12px system-ui, sans-serif";
  return context;
}

// Where a pointer is, within the element that it moves over.
function place(event) {
  const box = event.currentTarget.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

// TEXT cut to WIDTH; "" where less than three letters would be left.
function cut(context, text, width) {
  if (context.measureText(text).width <= width)
    return text;
  let low = 0, high = Math.min(text.length, 400);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width)
      low = middle;
    else
      high = middle - 1;
  }
  return low > 2 ? text.slice(0, low) + "…" : "";
}
