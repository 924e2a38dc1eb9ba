// SPDX-License-Identifier: Apache-2.0
// The timeline of a step: streams and host threads as tracks, modules above
// them. It is drawn on one canvas, whose part in sight can be chosen; of what is
// narrower than a pixel, a pixel is drawn.
"use strict";

const STEP_LANE = 22, STEP_RULER = 24, STEP_GUTTER = 128, STEP_STRIP = 40;
const STEP_MODULE_LANES = 4;
const HOST_COLOR = "#8b95a1", WAIT_COLOR = "#cc6677";
const CAUSES = ["its launch", "its stream", "another stream",
  "the copy engine", "another rank"];

const steps = {data: null, lanes: [], from: 0, to: 1, whole: 1, marks: null,
  width: 600, found: [], at: -1, chosen: null, drag: null, fills: null};

const stepName = (i) => steps.data.names[i] ?? "";

// --- lanes -------------------------------------------------------------------

// An item is {kind, i, start, end}: an operation, a call, or a module's part.
function operationsBy(track) {
  const {operations: o} = steps.data;
  const items = [];
  for (let i = 0; i < o.start_ns.length; i++)
    if (o.track[i] === track)
      items.push({kind: "operation", i, start: o.start_ns[i],
        end: o.start_ns[i] + o.duration_ns[i]});
  return items.sort((a, b) => a.start - b.start);
}

function callsBy(track) {
  const {calls: c} = steps.data;
  const items = [];
  for (let i = 0; i < c.start_ns.length; i++)
    if (c.track[i] === track)
      items.push({kind: "call", i, start: c.start_ns[i],
        end: c.start_ns[i] + c.duration_ns[i]});
  return items.sort((a, b) => a.start - b.start);
}

// Modules of the stream that works most, by depth: operations that follow each
// other and lie in the same module are one item.
function moduleLanes(items) {
  const lanes = [], {module} = steps.data.operations;
  for (let depth = 1; depth <= STEP_MODULE_LANES; depth++) {
    const lane = [];
    for (const item of items) {
      const path = module[item.i] < 0 ? []
        : stepName(module[item.i]).split(".");
      if (path.length < depth)
        continue;
      const name = path.slice(0, depth).join(".");
      const last = lane[lane.length - 1];
      if (last && last.name === name && last.next === item)
        Object.assign(last, {end: item.end, next: item.after});
      else
        lane.push({kind: "module", name, start: item.start, end: item.end,
          next: item.after});
    }
    if (lane.length)
      lanes.push({title: depth > 1 ? "" : "modules", items: lane});
  }
  return lanes;
}

function busiest(streams) {
  const busy = (lane) => sum(lane.items.map((item) => item.end - item.start));
  return streams.reduce((best, lane) =>
    !best || busy(lane) > busy(best) ? lane : best, null);
}

function makeLanes() {
  const {tracks, operations, calls} = steps.data;
  const streams = [], threads = [];
  tracks.forEach((title, track) => {
    if (operations.track.includes(track))
      streams.push({title, items: operationsBy(track)});
    else if (calls.track.includes(track))
      threads.push({title, items: callsBy(track)});
  });
  for (const {items} of streams)
    items.forEach((item, i) => {
      item.after = items[i + 1];
    });
  const most = busiest(streams);
  steps.lanes = [...(most ? moduleLanes(most.items) : []), ...streams,
    ...threads];
}

// --- what is in sight --------------------------------------------------------

const stepCanvas = () => find("steps-canvas");
const stripHeight = () => steps.fills ? STEP_STRIP : 0;
const laneTop = (i) => STEP_RULER + stripHeight() + i * STEP_LANE;
const stepWidth = () => steps.width; // asking the page takes long
const gutter = () => stepWidth() < 560 ? 0 : STEP_GUTTER;

const xOf = (ns) => gutter() + (ns - steps.from) * (stepWidth() - gutter()) /
  (steps.to - steps.from);
const nsAt = (x) => steps.from + (x - gutter()) * (steps.to - steps.from) /
  (stepWidth() - gutter());

function showPart(from, to) {
  const length = Math.min(Math.max(to - from, 200), steps.whole);
  steps.from = Math.min(Math.max(0, from), steps.whole - length);
  steps.to = steps.from + length;
  drawSteps();
  saveLink();
}

function zoomSteps(factor, at = (steps.from + steps.to) / 2) {
  showPart(at - (at - steps.from) * factor, at + (steps.to - at) * factor);
}

const panSteps = (ns) => showPart(steps.from + ns, steps.to + ns);

// The first of ITEMS that ends after NS.
function firstAfter(items, ns) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle].end <= ns)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// --- drawing -----------------------------------------------------------------

function itemName(item) {
  if (item.kind === "module")
    return item.name;
  return item.kind === "call" ? stepName(steps.data.calls.name[item.i])
    : stepName(steps.data.operations.name[item.i]);
}

function itemColor(item) {
  if (item.kind === "module")
    return COLORS.workspace;
  if (item.kind === "call")
    return steps.data.calls.waited_for[item.i] >= 0 ? WAIT_COLOR : HOST_COLOR;
  return familyColor(stepName(steps.data.operations.family[item.i]));
}

const isMarked = (item) => !steps.marks || steps.marks.has(item);

function drawItem(context, item, top) {
  const left = Math.max(xOf(item.start), gutter());
  const right = Math.min(xOf(item.end), stepWidth());
  const width = Math.max(right - left, 1);
  const color = itemColor(item);
  context.globalAlpha = isMarked(item) ? 1 : 0.18;
  context.fillStyle = color;
  context.fillRect(left, top + 1, width > 3 ? width - 0.5 : width,
    STEP_LANE - 3);
  if (width > 26) {
    context.fillStyle = inkOn(color);
    const text = cut(context, visible(itemName(item)), width - 6);
    if (text)
      context.fillText(text, left + 3, top + STEP_LANE / 2 + 3.5);
  }
  return left + width;
}

function drawLane(context, lane, index) {
  const top = laneTop(index);
  let last = -1;
  for (let i = firstAfter(lane.items, steps.from); i < lane.items.length &&
    lane.items[i].start < steps.to; i++) {
    const item = lane.items[i];
    // A pixel is drawn once, unless what is marked comes to it.
    if (xOf(item.end) > last + 0.3 || (steps.marks && isMarked(item)))
      last = drawItem(context, item, top);
  }
  context.globalAlpha = 1;
  if (lane.title && gutter()) {
    context.fillStyle = themeColor("dim");
    context.fillText(cut(context, visible(lane.title), gutter() - 8), 0,
      top + STEP_LANE / 2 + 4);
  }
}

// Round numbers of time, so that about eight fit.
function tickLength() {
  const wanted = (steps.to - steps.from) / (gutter() ? 8 : 4);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].find((n) => n * power >= wanted) * power;
}

function formatFine(ns) {
  const length = tickLength();
  if (steps.to - steps.from < 1e6)
    return `${(ns / 1e3).toFixed(length < 1e3 ? 1 : 0)} µs`;
  return `${(ns / 1e6).toFixed(length < 1e5 ? 2 : length < 1e6 ? 1 : 0)} ms`;
}

function drawRuler(context, height) {
  const length = tickLength(), {begin_ns: begin} = steps.data;
  context.strokeStyle = themeColor("line");
  context.fillStyle = themeColor("dim");
  context.textAlign = "center";
  for (let at = Math.ceil((steps.from - begin) / length) * length;
    at + begin < steps.to; at += length) {
    const x = Math.round(xOf(at + begin)) + 0.5;
    if (x < gutter())
      continue;
    context.beginPath();
    context.moveTo(x, STEP_RULER - 4);
    context.lineTo(x, height);
    context.stroke();
    context.fillText(formatFine(at), x, STEP_RULER - 9);
  }
  context.textAlign = "left";
}

// The share of the SMs that have work, over time.
function drawFills(context) {
  const {fills} = steps;
  if (!fills)
    return;
  const draw = (shares, color, line) => {
    context.beginPath();
    const base = STEP_RULER + STEP_STRIP - 4;
    shares.forEach((share, i) => {
      const start = steps.data.begin_ns + i * fills.window_ns;
      const left = Math.max(xOf(start), gutter());
      const right = Math.max(xOf(start + fills.window_ns), gutter());
      const y = base - share * (STEP_STRIP - 8);
      context.lineTo(left, line ? y : base - 0);
      context.lineTo(left, y);
      context.lineTo(right, y);
      if (!line)
        context.lineTo(right, base);
    });
    context.fillStyle = context.strokeStyle = color;
    if (line)
      context.stroke();
    else
      context.fill();
  };
  context.globalAlpha = 0.55;
  draw(fills.windows, "#4477aa", false);
  context.globalAlpha = 1;
  if (fills.measured)
    draw(fills.measured, themeColor("text"), true);
  if (gutter()) {
    context.fillStyle = themeColor("dim");
    context.fillText("SMs with work", 0, STEP_RULER + STEP_STRIP / 2 + 2);
  }
}

// Where an item is on the canvas, for arrows.
function spotOf(item) {
  const lane = steps.lanes.findIndex(({items}) => items.includes(item));
  return lane < 0 ? null : [lane, laneTop(lane) + STEP_LANE / 2];
}

function drawArrow(context, from, fromNs, to, toNs) {
  const a = from && spotOf(from), b = to && spotOf(to);
  if (!a || !b)
    return;
  const x = Math.max(xOf(fromNs), gutter()), y = Math.max(xOf(toNs), gutter());
  context.beginPath();
  context.moveTo(x, a[1]);
  context.bezierCurveTo((x + y) / 2, a[1], (x + y) / 2, b[1], y, b[1]);
  context.stroke();
  context.beginPath();
  context.arc(y, b[1], 3, 0, 7);
  context.fill();
}

function drawChosen(context) {
  const item = steps.chosen;
  if (!item)
    return;
  const [lane] = spotOf(item) || [-1];
  if (lane < 0)
    return;
  context.strokeStyle = context.fillStyle = themeColor("text");
  context.lineWidth = 1.5;
  const left = Math.max(xOf(item.start), gutter());
  context.strokeRect(left, laneTop(lane) + 1,
    Math.max(xOf(item.end) - left, 2), STEP_LANE - 3);
  for (const {item: other, before} of dependenciesOf(item))
    if (before)
      drawArrow(context, other, Math.min(other.end, item.start), item,
        item.start);
    else
      drawArrow(context, item, item.end, other,
        Math.max(other.start, item.end));
  context.lineWidth = 1;
}

function drawSteps() {
  if (!steps.data || find("steps").hidden)
    return;
  const canvas = stepCanvas();
  const width = canvas.parentElement.clientWidth || 600;
  steps.width = width;
  const height = laneTop(steps.lanes.length) + 2;
  canvas.style.height = `${height}px`;
  canvas.style.width = `${width}px`;
  const context = drawOn(canvas, width, height);
  drawRuler(context, height);
  drawFills(context);
  context.save();
  steps.lanes.forEach((lane, i) => drawLane(context, lane, i));
  drawChosen(context);
  context.restore();
  find("steps-span").textContent = `${formatTime(steps.to - steps.from)} of ` +
    formatTime(steps.whole) + " in sight";
}

// --- dependencies ------------------------------------------------------------

function itemOf(kind, i) {
  if (i < 0 || i === undefined)
    return undefined;
  steps.index ??= new Map(steps.lanes.flatMap(({items}) =>
    items.filter((item) => item.kind !== "module").map((item) =>
      [`${item.kind} ${item.i}`, item])));
  return steps.index.get(`${kind} ${i}`);
}

// What ITEM waited for, and what waited for it: {item, before, what}.
function dependenciesOf(item) {
  const {operations: o, calls: c} = steps.data;
  const found = [];
  const add = (other, before, what) => {
    if (other)
      found.push({item: other, before, what});
  };
  if (item.kind === "operation") {
    add(itemOf("call", o.call[item.i]), true, "launched by");
    if (o.cause[item.i] > 0)
      add(itemOf("operation", o.waited_for[item.i]), true,
        `waited for ${CAUSES[o.cause[item.i]]}`);
    o.waited_for.forEach((other, i) => {
      if (other === item.i && o.cause[i] > 0)
        add(itemOf("operation", i), false, `${CAUSES[o.cause[i]]} let go on`);
    });
    c.waited_for.forEach((other, i) => {
      if (other === item.i)
        add(itemOf("call", i), false, "the host waited for it");
    });
  } else if (item.kind === "call") {
    add(itemOf("operation", c.operation[item.i]), false, "launched");
    add(itemOf("operation", c.waited_for[item.i]), true, "waited for");
  }
  return found;
}

function describe(item) {
  const {operations: o} = steps.data, length = item.end - item.start;
  const lines = [shorten(itemName(item), 300)];
  const since = item.start - steps.data.begin_ns;
  if (item.kind === "operation")
    lines.push([itemColor(item), wordsOf(stepName(o.family[item.i])),
      `${(length / 1e3).toFixed(2)} µs`]);
  else
    lines.push([itemColor(item), item.kind, `${(length / 1e3).toFixed(2)} µs`]);
  lines.push(["", "starts at", `${(since / 1e3).toFixed(2)} µs`]);
  if (item.kind !== "operation")
    return lines;
  if (o.module[item.i] >= 0)
    lines.push(["", "module", shorten(stepName(o.module[item.i]), 90)]);
  if (o.operator[item.i] >= 0)
    lines.push(["", "operator", shorten(stepName(o.operator[item.i]), 90)]);
  if (o.bytes[item.i])
    lines.push(["", "bytes", formatBytes(o.bytes[item.i])]);
  lines.push(["", "waited for", CAUSES[o.cause[item.i]] || ""],
    ["", "launched before it", `${((o.start_ns[item.i] -
      o.launched_ns[item.i]) / 1e3).toFixed(2)} µs`],
    ["", "duration is", stepName(o.basis[item.i])]);
  return lines;
}

function showItem(item) {
  const margin = Math.max((item.end - item.start) * 2,
    (steps.to - steps.from) / 2);
  const middle = (item.start + item.end) / 2;
  if (item.start < steps.from || item.end > steps.to ||
      item.end - item.start < (steps.to - steps.from) / 200)
    showPart(middle - Math.min(margin, (item.end - item.start) * 40 + 2000),
      middle + Math.min(margin, (item.end - item.start) * 40 + 2000));
}

function dependencyRow({item, what}) {
  const row = element("li"), button = element("button",
    shorten(itemName(item), 120), "link");
  button.type = "button";
  button.addEventListener("click", () => chooseItem(item, true));
  row.append(element("span", `${what}: `), button,
    element("em", ` ${((item.end - item.start) / 1e3).toFixed(2)} µs`));
  return row;
}

function chooseItem(item, move) {
  steps.chosen = item;
  find("steps-chosen").hidden = !item || item.kind === "module";
  if (item) {
    const lines = describe(item);
    find("steps-name").textContent = lines[0];
    find("steps-facts").textContent = lines.slice(1).map(([, label, value]) =>
      `${label} ${value}`).join(" · ");
    find("steps-needs").replaceChildren(
      ...dependenciesOf(item).slice(0, 40).map(dependencyRow));
  }
  if (item && move)
    showItem(item);
  drawSteps();
}

// --- search ------------------------------------------------------------------

function matcher(text) {
  const expression = /^\/(.+)\/$/.exec(text);
  if (expression)
    try {
      const regular = new RegExp(expression[1], "i");
      return (name) => regular.test(name);
    } catch {
      return () => false;
    }
  const wanted = text.toLowerCase();
  return (name) => name.toLowerCase().includes(wanted);
}

function itemMatches(item, match) {
  if (match(itemName(item)))
    return true;
  const {operations: o} = steps.data;
  return item.kind === "operation" && (match(stepName(o.module[item.i])) ||
    match(stepName(o.operator[item.i])) || match(stepName(o.family[item.i])));
}

function searchSteps() {
  const text = find("steps-search").value.trim();
  steps.at = -1;
  steps.marks = null;
  find("steps-found").textContent = "";
  if (text) {
    const match = matcher(text);
    steps.found = steps.lanes.flatMap(({items}) => items)
      .filter((item) => itemMatches(item, match))
      .sort((a, b) => a.start - b.start);
    steps.marks = new Set(steps.found);
    const work = steps.found.filter(({kind}) => kind === "operation");
    find("steps-found").textContent =
      `${plural(work.length, "operation")}, ` +
      `${formatTime(sum(work.map((item) => item.end - item.start)))}; ` +
      `${plural(steps.found.filter(({kind}) => kind === "call").length,
        "call")}`;
  }
  drawSteps();
  saveLink();
}

function nextFound(backwards) {
  const {length} = steps.found;
  if (!steps.marks || !length)
    return;
  steps.at = (steps.at + (backwards ? -1 : 1) + length) % length;
  chooseItem(steps.found[steps.at], true);
}

// --- the pointer and the keys ------------------------------------------------

function itemAt(x, y) {
  const lane = steps.lanes[Math.floor((y - laneTop(0)) / STEP_LANE)];
  if (!lane || y < laneTop(0) || x < gutter())
    return undefined;
  const near = nsAt(x - 1.5), i = firstAfter(lane.items, near);
  return lane.items[i] && lane.items[i].start <= nsAt(x + 1.5)
    ? lane.items[i] : undefined;
}

function fillTip(x) {
  const {fills} = steps;
  const at = Math.floor((nsAt(x) - steps.data.begin_ns) / fills.window_ns);
  if (fills.windows[at] === undefined)
    return undefined;
  return ["#4477aa", "SMs with work", formatPercent(fills.windows[at], 1)];
}

function hoverSteps(event) {
  const [x, y] = place(event);
  if (steps.drag) {
    const [start, from, to] = steps.drag;
    const shift = (start - x) * (to - from) / (stepWidth() - gutter());
    steps.moved ||= Math.abs(start - x) > 4;
    if (steps.moved)
      showPart(from + shift, to + shift);
    return;
  }
  const item = itemAt(x, y);
  if (item)
    showTip(describe(item), event.clientX, event.clientY);
  else if (steps.fills && y > STEP_RULER && y < laneTop(0) && fillTip(x))
    showTip([fillTip(x)], event.clientX, event.clientY);
  else
    hideTip();
}

function wheelSteps(event) {
  if (!event.ctrlKey && !event.metaKey &&
      document.activeElement !== stepCanvas())
    return; // the page scrolls
  event.preventDefault();
  hideTip();
  if (event.shiftKey)
    panSteps(event.deltaY * (steps.to - steps.from) / 1000);
  else
    zoomSteps(Math.exp(event.deltaY / 400), nsAt(place(event)[0]));
}

const STEP_KEYS = {
  "+": () => zoomSteps(0.5), "=": () => zoomSteps(0.5), w: () => zoomSteps(0.5),
  "-": () => zoomSteps(2), s: () => zoomSteps(2),
  "0": () => showPart(0, steps.whole),
  ArrowLeft: () => panSteps((steps.from - steps.to) / 5),
  ArrowRight: () => panSteps((steps.to - steps.from) / 5),
  a: () => panSteps((steps.from - steps.to) / 5),
  d: () => panSteps((steps.to - steps.from) / 5),
  Escape: () => chooseItem(null),
};

function keySteps(event) {
  const act = event.ctrlKey || event.metaKey ? undefined
    : STEP_KEYS[event.key];
  if (!act)
    return;
  event.preventDefault();
  act();
}

function startSteps() {
  const canvas = stepCanvas();
  canvas.addEventListener("pointermove", hoverSteps);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("pointerdown", (event) => {
    steps.drag = [place(event)[0], steps.from, steps.to];
    steps.moved = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointerup", (event) => {
    steps.drag = null;
    if (!steps.moved)
      chooseItem(itemAt(...place(event)) || null);
  });
  canvas.addEventListener("dblclick", (event) => {
    const item = itemAt(...place(event));
    if (item)
      showPart(item.start - (item.end - item.start) / 5,
        item.end + (item.end - item.start) / 5);
  });
  canvas.addEventListener("wheel", wheelSteps, {passive: false});
  canvas.addEventListener("keydown", keySteps);
  find("steps-in").addEventListener("click", () => zoomSteps(0.5));
  find("steps-out").addEventListener("click", () => zoomSteps(2));
  find("steps-all").addEventListener("click", () => showPart(0, steps.whole));
  find("steps-search").addEventListener("input", searchSteps);
  find("steps-search").addEventListener("keydown", (event) => {
    if (event.key === "Enter")
      nextFound(event.shiftKey);
  });
}

// --- a rank ------------------------------------------------------------------

function showSteps(result, rank, step) {
  const data = rank?.step_timeline;
  find("steps").hidden = !data;
  Object.assign(steps, {data, lanes: [], index: null, chosen: null,
    marks: null, found: [], fills: null});
  if (!data)
    return;
  if (rank.utilization && data.step_index === rank.step_index)
    steps.fills = rank.utilization;
  find("steps-title").textContent = `Timeline of step ${data.step_index}` +
    ((result.ranks || []).length > 1 ? `, rank ${rank.rank}` : "");
  find("steps-more").textContent = data.dropped
    ? `${formatCount(data.dropped)} further operations and calls are left out.`
    : "";
  find("steps-search").value = "";
  find("steps-chosen").hidden = true;
  makeLanes();
  steps.whole = Math.max(data.end_ns, ...steps.lanes.map(({items}) =>
    items.length ? items[items.length - 1].end : 0));
  steps.from = 0;
  steps.to = steps.whole;
  searchSteps();
}
