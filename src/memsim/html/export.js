// SPDX-License-Identifier: Apache-2.0
// Charts as PNG and SVG files, and texts to the clipboard.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// Takes what is drawn on a canvas's context, as far as this page draws, and
// makes an SVG document of it.
class SvgPen {
  constructor(width, height) {
    this.root = this.make("svg", {width, height,
      viewBox: `0 0 ${width} ${height}`});
    this.canvas = {width, height, style: {}, getContext: () => this};
    this.shapes = 0;
    this.saved = [];
    Object.assign(this, {fillStyle: "#000", strokeStyle: "#000", lineWidth: 1,
      globalAlpha: 1, font: "12px system-ui, sans-serif", textAlign: "left",
      textBaseline: "alphabetic", lineCap: "butt", lineJoin: "miter",
      matrix: [1, 0, 0, 1, 0, 0], dash: [], clipped: "", path: ""});
    this.ruler = document.createElement("canvas").getContext("2d");
    this.make("rect", {width, height, fill: themeColor("panel")}, this.root);
  }

  make(name, attributes, parent) {
    const e = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes))
      e.setAttribute(key, typeof value === "number"
        ? Math.round(value * 100) / 100 : value);
    parent?.append(e);
    return e;
  }

  put(name, attributes) {
    const [a, b, c, d, e, f] = this.matrix;
    const moved = a !== 1 || b || c || d !== 1 || e || f;
    return this.make(name, {...attributes,
      ...(moved ? {transform: `matrix(${this.matrix.join(" ")})`} : {}),
      ...(this.globalAlpha < 1 ? {opacity: this.globalAlpha} : {})},
    this.layer());
  }

  // Where the next element goes: a group for all that is clipped alike.
  layer() {
    if (!this.clipped)
      return this.root;
    if (this.root.lastChild.getAttribute("clip-path") !== this.clipped)
      this.make("g", {"clip-path": this.clipped}, this.root);
    return this.root.lastChild;
  }

  save() {
    const {fillStyle, strokeStyle, lineWidth, globalAlpha, font, textAlign,
      textBaseline, lineCap, lineJoin, matrix, dash, clipped} = this;
    this.saved.push({fillStyle, strokeStyle, lineWidth, globalAlpha, font,
      textAlign, textBaseline, lineCap, lineJoin, matrix, dash, clipped});
  }

  restore() {
    Object.assign(this, this.saved.pop());
  }

  // --- transforms
  transform(a, b, c, d, e, f) {
    const [A, B, C, D, E, F] = this.matrix;
    this.matrix = [A * a + C * b, B * a + D * b, A * c + C * d, B * c + D * d,
      A * e + C * f + E, B * e + D * f + F];
  }

  setTransform(...m) {
    this.matrix = m.length === 6 ? m : [1, 0, 0, 1, 0, 0];
  }

  resetTransform() {
    this.setTransform();
  }

  translate(x, y) {
    this.transform(1, 0, 0, 1, x, y);
  }

  scale(x, y) {
    this.transform(x, 0, 0, y, 0, 0);
  }

  rotate(angle) {
    const [sine, cosine] = [Math.sin(angle), Math.cos(angle)];
    this.transform(cosine, sine, -sine, cosine, 0, 0);
  }

  // --- paths
  add(letter, ...numbers) {
    this.path += letter + numbers.map((n) => Math.round(n * 100) / 100)
      .join(" ");
  }

  beginPath() {
    this.path = "";
  }

  closePath() {
    this.path += "Z";
  }

  moveTo(x, y) {
    this.add("M", x, y);
  }

  lineTo(x, y) {
    this.add(this.path ? "L" : "M", x, y);
  }

  bezierCurveTo(...numbers) {
    this.add("C", ...numbers);
  }

  quadraticCurveTo(...numbers) {
    this.add("Q", ...numbers);
  }

  rect(x, y, width, height) {
    this.add("M", x, y);
    this.add("h", width);
    this.add("v", height);
    this.add("h", -width);
    this.closePath();
  }

  arc(x, y, radius, from, to) {
    const round = Math.abs(to - from) > 2 * Math.PI - 1e-6;
    const at = (angle) => [x + radius * Math.cos(angle),
      y + radius * Math.sin(angle)];
    const middle = (from + to) / 2, end = round ? from + 2 * Math.PI : to;
    this.lineTo(...at(from));
    this.add("A", radius, radius, 0, 0, to > from ? 1 : 0,
      ...at(round ? from + Math.PI : middle));
    this.add("A", radius, radius, 0, 0, to > from ? 1 : 0, ...at(end));
  }

  ellipse(x, y, radius, _, angle, from, to) {
    this.arc(x, y, radius, from + angle, to + angle);
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  getLineDash() {
    return this.dash;
  }

  // --- what is drawn
  paintOf(style) {
    return style?.pattern ? `url(#${style.pattern})` : style;
  }

  strokeOf() {
    return {fill: "none", stroke: this.paintOf(this.strokeStyle),
      "stroke-width": this.lineWidth,
      ...(this.dash.length ? {"stroke-dasharray": this.dash.join(" ")} : {})};
  }

  fill() {
    if (this.path)
      this.put("path", {d: this.path, fill: this.paintOf(this.fillStyle)});
  }

  stroke() {
    if (this.path)
      this.put("path", {d: this.path, ...this.strokeOf()});
  }

  clip() {
    const id = `clip${++this.shapes}`;
    const clip = this.make("clipPath", {id}, this.root);
    this.make("path", {d: this.path || "M0 0",
      transform: `matrix(${this.matrix.join(" ")})`}, clip);
    this.clipped = `url(#${id})`;
  }

  fillRect(x, y, width, height) {
    this.put("rect", {x, y, width, height, fill: this.paintOf(this.fillStyle)});
  }

  strokeRect(x, y, width, height) {
    this.put("rect", {x, y, width, height, ...this.strokeOf()});
  }

  clearRect() {
    // What is under a chart is the page's panel.
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text, x, y) {
    const anchors = {center: "middle", right: "end", end: "end"};
    const bases = {middle: "central", top: "text-before-edge",
      bottom: "text-after-edge"};
    const [, bold, size, family] =
      /^(?:normal |italic )*(bold |\d+ )?([\d.]+)px(?:\/\S+)? (.*)$/.exec(this.font) ||
      [];
    this.put("text", {x, y, fill: this.paintOf(this.fillStyle),
      "font-family": family || "sans-serif", "font-size": size || "12",
      ...(bold ? {"font-weight": bold.trim()} : {}),
      "text-anchor": anchors[this.textAlign] || "start",
      "dominant-baseline": bases[this.textBaseline] || "auto"})
      .textContent = visible(text);
  }

  createPattern(tile) {
    const id = `pattern${++this.shapes}`;
    const {width, height} = tile;
    const pattern = this.make("pattern", {id, width, height,
      patternUnits: "userSpaceOnUse"}, this.root);
    this.make("image", {width, height, href: tile.toDataURL()}, pattern);
    return {pattern: id};
  }

  text() {
    return `<?xml version="1.0" encoding="UTF-8"?>\n` +
      new XMLSerializer().serializeToString(this.root) + "\n";
  }
}

// --- charts ------------------------------------------------------------------

// The SVG of the chart in CANVAS, which DRAW draws.
function svgOfCanvas(canvas, draw) {
  const {width, height} = canvas.getBoundingClientRect();
  const pen = new SvgPen(Math.round(width), Math.round(height));
  drawOn.pen = pen;
  try {
    draw();
  } finally {
    drawOn.pen = null;
  }
  return pen.text();
}

function svgOfTimeline(canvas) {
  const {width, height} = canvas.getBoundingClientRect();
  const pen = new SvgPen(Math.round(width), Math.round(height));
  const config = chartConfig();
  Object.assign(config.options, {responsive: false, devicePixelRatio: 1});
  for (const set of config.data.datasets)
    set.segment = {}; // else lines are Path2D objects, which none can read
  new Chart(pen.canvas, {...config,
    platform: Chart.platforms.BasicPlatform}).destroy();
  return pen.text();
}

const canvasOf = (name) => find(`${name}-canvas`);

// A chart on a canvas: what it is as SVG, and the canvas for a PNG.
function canvasChart(name, draw) {
  return {svg: () => svgOfCanvas(canvasOf(name), draw),
    canvas: () => canvasOf(name)};
}

const CHARTS = {
  timeline: {...canvasChart("timeline"),
    svg: () => svgOfTimeline(canvasOf("timeline"))},
  blocks: canvasChart("blocks", () => drawBlocks()),
  steps: canvasChart("steps", () => drawSteps()),
  treemap: canvasChart("treemap", () => drawTreemap()),
  segments: canvasChart("segments", () => drawSegments()),
  stacks: {svg: svgOfStacks, canvas: canvasOfStacks},
};

function svgOfStacks() {
  const {width, height} = find("stacks-graph").getBoundingClientRect();
  const pen = new SvgPen(Math.round(width), Math.round(height));
  paintStacks(pen, width);
  return pen.text();
}

function canvasOfStacks() {
  const {width, height} = find("stacks-graph").getBoundingClientRect();
  const canvas = document.createElement("canvas"), scale = 2;
  canvas.width = scale * width;
  canvas.height = scale * height;
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  paintStacks(context, width);
  return canvas;
}

function download(name, blob) {
  const link = element("a"), url = URL.createObjectURL(blob);
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

function savePng(name) {
  const canvas = CHARTS[name].canvas();
  const copy = document.createElement("canvas");
  copy.width = canvas.width;
  copy.height = canvas.height;
  const context = copy.getContext("2d");
  context.fillStyle = themeColor("panel");
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => download(`memsim-${name}.png`, blob));
}

function saveSvg(name) {
  download(`memsim-${name}.svg`, new Blob([CHARTS[name].svg()],
    {type: "image/svg+xml"}));
}

function saveButtons(name) {
  const group = element("span", undefined, "zoom");
  const add = (title, act) => {
    const button = element("button", title, "quiet");
    button.type = "button";
    button.title = `Save this chart as ${title}`;
    button.ariaLabel = button.title;
    button.addEventListener("click", () => act(name));
    group.append(button);
  };
  add("PNG", savePng);
  add("SVG", saveSvg);
  return group;
}

// --- the clipboard -----------------------------------------------------------

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no clipboard for this page: by a field that is selected
    const field = element("textarea", text, "away");
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

// A button that copies what TEXT returns.
function copyButton(what, text) {
  const button = element("button", "Copy", "quiet");
  button.type = "button";
  button.ariaLabel = `Copy ${what}`;
  button.addEventListener("click", async () => {
    await copyText(text());
    button.textContent = "Copied";
    setTimeout(() => {
      button.textContent = "Copy";
    }, 1500);
  });
  return button;
}

function startExport() {
  for (const name of Object.keys(CHARTS))
    find(name).querySelector(".title").append(saveButtons(name));
  find("command").after(copyButton("the command", () =>
    commandOf(page.result)));
  find("blocks-chosen").prepend(copyButton("the block", () =>
    find("blocks-text").textContent));
}

// A word as a shell reads it back.
const shellWord = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word
  : `'${word.replaceAll("'", "'\\''")}'`;
