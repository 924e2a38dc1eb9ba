// SPDX-License-Identifier: Apache-2.0
// Each block over time: from its allocation to its free, over the axis of the
// memory chart. Stacked in the order of their allocation, or where they lie.
"use strict";

const BLOCKS_HEIGHT = 340;
const blocks = {data: null, layout: "stacked", lives: [], rows: [], rects: [],
  marks: null, chosen: -1, top: 1, width: 600, left: 0, right: 600,
  waiting: 0};

const blockName = (i) => i < 0 || i === undefined ? ""
  : axis.history.names[i] ?? "";

// A block's module and operator, for a person.
const blockModule = (life) => blockName(blocks.data.module[life.i]);
const blockOperator = (life) => blockName(blocks.data.operator[life.i]);
const blockCategory = (life) => blockName(blocks.data.category[life.i]);
const blockStack = (life) => blockName(blocks.data.stack[life.i]);

// --- where blocks are --------------------------------------------------------

// Colours of Python stacks and operators, where all blocks are of one category.
const HUES = ["#4477aa", "#cc6677", "#ddaa33", "#228866", "#aa4499", "#88ccee",
  "#999933", "#6655bb", "#de9aa6", "#7b9fc6"];

// The lives of all blocks on the present axis, by their begin.
function livesOnAxis({born, died, born_ns: bornNs, died_ns: diedNs, bytes,
  category, stack, operator}) {
  const lives = [], alike = category.every((one) => one === category[0]);
  const origin = (i) => stack[i] < 0 ? operator[i] : stack[i];
  const colorAt = (i) => alike && origin(i) >= 0
    ? HUES[origin(i) % HUES.length]
    : colorOf(axis.history.names[category[i]]);
  for (let i = 0; i < born.length; i++) {
    const from = placeOf(born[i], bornNs[i]);
    const to = died[i] < 0 ? axis.highest : placeOf(died[i], diedNs[i]);
    if (to > from || died[i] < 0) // the last event has no width
      lives.push({i, from, to, bytes: bytes[i], color: colorAt(i)});
  }
  return lives.sort((a, b) => a.from - b.from);
}

// Where each address lies when what no block ever used is taken out.
function packAddresses({address, bytes}) {
  const order = [...address.keys()].sort((a, b) => address[a] - address[b]);
  const rows = [];
  let packed = 0;
  for (const i of order) {
    const last = rows[rows.length - 1], end = address[i] + bytes[i];
    if (last && address[i] <= last.end) {
      packed += Math.max(0, end - last.end);
      last.end = Math.max(last.end, end);
      continue;
    }
    rows.push({start: address[i], end, packed});
    packed += bytes[i];
  }
  blocks.rows = rows;
  blocks.packed = packed;
}

const packedAt = (address) => {
  const row = blocks.rows[lastUpTo(blocks.rows, "start", address)];
  return row.packed + address - row.start;
};

function layOutBlocks() {
  blocks.data = axis.history?.blocks;
  blocks.lives = [];
  find("blocks").hidden = !blocks.data?.born.length;
  if (find("blocks").hidden)
    return;
  blocks.lives = livesOnAxis(blocks.data);
  packAddresses(blocks.data);
  find("blocks-more").textContent = axis.history.left_out
    ? `${plural(axis.history.left_out, "block")} of less than ` +
      `${formatRound(axis.history.least_bytes)} are left out.` : "";
  const alike = axis.runs.filter((run) => run.count > 1);
  find("blocks-alike").textContent = alike.length
    ? `Of ${alike.map(runLabel).slice(0, 4).join(", ")}` +
      `${alike.length > 4 ? " and others" : ""}, which request the same, ` +
      "the first is drawn." : "";
}

const blockScale = () => (blocks.right - blocks.left) / (axis.to - axis.from);
const blockX = (place) => blocks.left + (place - axis.from) * blockScale();

// Rectangles of the blocks in sight where they lie in memory.
function rectsByAddress() {
  const {address} = blocks.data, high = BLOCKS_HEIGHT - STEP_RULER;
  const scale = high / blocks.packed;
  blocks.top = blocks.packed;
  return blocks.lives.filter((l) => l.to > axis.from && l.from < axis.to)
    .map((life) => {
      const y = packedAt(address[life.i]) * scale;
      return {life, x0: Math.max(blocks.left, blockX(life.from)),
        x1: Math.min(blocks.right, blockX(life.to)),
        y1: BLOCKS_HEIGHT - y, y0: BLOCKS_HEIGHT - y - life.bytes * scale};
    });
}

// The place in each column of pixels where most is allocated.
function columnPlaces(count) {
  const {points} = axis, best = new Array(count).fill(null);
  const width = (axis.to - axis.from) / count;
  for (const p of points) {
    const place = placeOf(p.event, p.time_ns);
    const column = Math.floor((place - axis.from) / width);
    if (column >= 0 && column < count && (!best[column] ||
        p.allocated > best[column].bytes))
      best[column] = {place, bytes: p.allocated};
  }
  return best.map((p, i) => p ? p.place : axis.from + (i + 0.5) * width);
}

// Rectangles of blocks on each other, the oldest at the bottom: a block sinks
// when one below it is freed.
function rectsStacked() {
  const count = Math.max(1, Math.floor(blocks.right - blocks.left));
  const rects = [], places = columnPlaces(count);
  const high = BLOCKS_HEIGHT - STEP_RULER;
  blocks.top = Math.max(1, axis.points.reduce((most, p) =>
    Math.max(most, p.allocated), 0));
  let live = [], next = 0;
  const close = (entry, column) => {
    if (entry.since !== undefined && column > entry.since)
      rects.push({life: entry.life, x0: blocks.left + entry.since,
        x1: blocks.left + column, y1: BLOCKS_HEIGHT - entry.base * high /
          blocks.top, y0: BLOCKS_HEIGHT - (entry.base + entry.life.bytes) *
          high / blocks.top});
  };
  for (let column = 0; column < count; column++) {
    const at = places[column], kept = [];
    for (; next < blocks.lives.length && blocks.lives[next].from <= at; next++)
      live.push({life: blocks.lives[next]});
    let base = 0;
    for (const entry of live) {
      if (entry.life.to <= at) {
        close(entry, column);
        continue;
      }
      if (entry.base !== base) {
        close(entry, column);
        Object.assign(entry, {base, since: column});
      }
      base += entry.life.bytes;
      kept.push(entry);
    }
    live = kept;
  }
  live.forEach((entry) => close(entry, count));
  return rects;
}

// --- drawing -----------------------------------------------------------------

function drawBlockAxes(context) {
  const step = byteStep(blocks.top, 6), high = BLOCKS_HEIGHT - STEP_RULER;
  context.fillStyle = themeColor("dim");
  context.textAlign = "right";
  for (let bytes = 0; bytes <= blocks.top; bytes += step) {
    const y = BLOCKS_HEIGHT - bytes * high / blocks.top;
    context.fillText(formatRound(bytes), blocks.left - 8, y + (bytes ? 4 : -2));
  }
  context.textAlign = "center";
  for (const {value, label} of axisTicks(Math.max(2, blocks.width / 110)))
    context.fillText(label, Math.min(blocks.width - 40, Math.max(blocks.left,
      blockX(value))), STEP_RULER - 12);
  context.textAlign = "left";
}

const isBlockMarked = (life) => !blocks.marks || blocks.marks.has(life);

function drawRect(context, {life, x0, x1, y0, y1}) {
  const {color} = life;
  const wide = x1 - x0, high = y1 - y0;
  context.globalAlpha = isBlockMarked(life) ? 1 : 0.18;
  context.fillStyle = color;
  context.fillRect(x0, y0, Math.max(wide > 3 ? wide - 0.5 : wide, 0.5),
    Math.max(high > 3 ? high - 0.5 : high, 0.4));
  if (high < 13 || wide < 40)
    return;
  const text = cut(context, shorten([blockModule(life), blockOperator(life)]
    .filter(Boolean).join(" · ") || wordsOf(blockCategory(life)), 120),
  wide - 8);
  context.fillStyle = inkOn(color);
  if (text)
    context.fillText(text, x0 + 4, (y0 + y1) / 2 + 4);
}

function drawChosenBlock(context) {
  context.globalAlpha = 1;
  context.strokeStyle = themeColor("text");
  context.lineWidth = 2;
  for (const {life, x0, x1, y0, y1} of blocks.rects)
    if (life.i === blocks.chosen)
      context.strokeRect(x0, y0, Math.max(x1 - x0, 2), Math.max(y1 - y0, 2));
  context.lineWidth = 1;
}

// What the clock's axis has no blocks for.
function drawFolded(context) {
  if (axis.name !== "clock")
    return;
  for (const run of axis.runs.filter(({count}) => count > 1)) {
    const x0 = Math.max(blocks.left, blockX(run.first_end_ns - axis.start));
    const x1 = Math.min(blocks.right,
      blockX(run.end_ns - axis.start));
    if (x1 <= x0)
      continue;
    context.globalAlpha = 0.25;
    context.fillStyle = hatch(context);
    context.fillRect(x0, STEP_RULER, x1 - x0, BLOCKS_HEIGHT - STEP_RULER);
    context.globalAlpha = 1;
  }
}

function drawBlocks() {
  const canvas = find("blocks-canvas");
  if (find("blocks").hidden || !blocks.data)
    return;
  const area = timeline.chart?.chartArea; // both have one axis
  blocks.width = canvas.parentElement.clientWidth || 600;
  blocks.left = area ? area.left : 68;
  blocks.right = area ? area.right : blocks.width - 12;
  blocks.rects = blocks.layout === "address" ? rectsByAddress()
    : rectsStacked();
  canvas.style.width = `${blocks.width}px`;
  canvas.style.height = `${BLOCKS_HEIGHT}px`;
  const context = drawOn(canvas, blocks.width, BLOCKS_HEIGHT);
  drawBlockAxes(context);
  blocks.rects.forEach((rect) => drawRect(context, rect));
  context.globalAlpha = 1;
  drawFolded(context);
  drawChosenBlock(context);
}

function drawBlocksSoon() {
  cancelAnimationFrame(blocks.waiting);
  blocks.waiting = requestAnimationFrame(drawBlocks);
}

// --- one block ---------------------------------------------------------------

function whenWas(event, ns) {
  const run = axis.runs[lastUpTo(axis.runs, "begin_ns", ns)];
  const phase = phaseAt(ns);
  return `${run ? runLabel(run).replace("start", "before the first step")
    : ""}${phase ? `, ${phase.phase}` : ""}, event ${formatCount(event)}, ` +
    formatTime(ns - axis.start);
}

// What is known of a block's life: [label, text].
function blockFacts(life) {
  const {data} = blocks, {i} = life;
  const dead = data.died[i] >= 0;
  return [
    ["size", formatBytes(data.bytes[i])],
    ["category", wordsOf(blockCategory(life))],
    ["module", visible(blockModule(life)) || NO_MODULE],
    ["operator", visible(blockOperator(life)) || "not known"],
    ["allocated", whenWas(data.born[i], data.born_ns[i])],
    ["freed", dead ? whenWas(data.died[i], data.died_ns[i])
      : "not before the end"],
    ["lived", dead ? formatTime(data.died_ns[i] - data.born_ns[i]) : "to the end"],
    ["address", "0x" + data.address[i].toString(16)],
  ];
}

function tellBlock(life, x, y) {
  const facts = new Map(blockFacts(life));
  const frame = blockStack(life).split("\n")[0];
  showTip([shorten(facts.get("module"), 120),
    [colorOf(blockCategory(life)), facts.get("category"), facts.get("size")],
    ["", "operator", shorten(facts.get("operator"), 60)],
    frame && shorten(shortFrame(frame), 120),
    ["", "lived", facts.get("lived")]], x, y);
}

function blockText(life) {
  const stack = blockStack(life);
  return [...blockFacts(life).map(([label, text]) => `${label} ${text}`), "",
    ...(stack || "no Python stack (--stacks records them)").split("\n")
      .map(visible)].join("\n");
}

function chooseBlock(life) {
  blocks.chosen = life ? life.i : -1;
  find("blocks-chosen").hidden = !life;
  if (life)
    find("blocks-text").textContent = blockText(life);
  drawBlocks();
  saveLink();
}

const lifeOf = (i) => blocks.lives.find((life) => life.i === i);

const blockAt = (x, y) => blocks.rects.findLast((r) =>
  x >= r.x0 - 0.5 && x <= r.x1 + 0.5 && y >= r.y0 && y <= r.y1)?.life;

// The next block of those in sight, by begin, or above and below.
function stepBlock(key) {
  const seen = blocks.rects.filter(({life}) => isBlockMarked(life));
  const now = seen.find(({life}) => life.i === blocks.chosen);
  if (!seen.length)
    return;
  if (!now)
    return chooseBlock(seen.reduce((first, r) =>
      r.life.from < first.life.from ? r : first).life);
  const side = key === "ArrowUp" || key === "ArrowDown";
  const middle = (now.x0 + now.x1) / 2;
  const order = side ? seen.filter((r) => r.x0 <= middle && r.x1 >= middle)
    .sort((a, b) => b.y0 - a.y0)
    : [...seen].sort((a, b) => a.life.from - b.life.from);
  const at = order.findIndex(({life}) => life === now.life);
  const by = key === "ArrowUp" || key === "ArrowRight" ? 1 : -1;
  let next = order[at + by];
  for (let i = at + by; next && next.life === now.life; i += by)
    next = order[i];
  if (next)
    chooseBlock(next.life);
}

function keyBlocks(event) {
  if (event.key === "Escape")
    chooseBlock(null);
  else if (event.key.startsWith("Arrow") && !event.ctrlKey)
    stepBlock(event.key);
  else
    return;
  event.preventDefault();
  const rect = blocks.rects.find(({life}) => life.i === blocks.chosen);
  const box = find("blocks-canvas").getBoundingClientRect();
  if (rect)
    tellBlock(rect.life, box.left + (rect.x0 + Math.min(rect.x1,
      rect.x0 + 40)) / 2, box.top + rect.y1);
  else
    hideTip();
}

// --- search ------------------------------------------------------------------

function searchBlocks() {
  const text = find("blocks-search").value.trim();
  blocks.marks = null;
  find("blocks-found").textContent = "";
  if (text && blocks.data) {
    const match = matcher(text);
    const found = blocks.lives.filter((life) => [blockModule(life),
      blockOperator(life), wordsOf(blockCategory(life)), blockStack(life)]
      .some(match));
    blocks.marks = new Set(found);
    find("blocks-found").textContent = `${plural(found.length, "block")}, ` +
      `the largest ${formatBytes(found.reduce((most, life) =>
        Math.max(most, life.bytes), 0))}.`;
  }
  drawBlocks();
  saveLink();
}

function hoverBlocks(event) {
  const life = blockAt(...place(event));
  if (life && !event.buttons)
    tellBlock(life, event.clientX, event.clientY);
  else
    hideTip();
}

function setLayout(name) {
  blocks.layout = name === "address" ? name : "stacked";
  find("layout").value = blocks.layout;
  drawBlocks();
  saveLink();
}

function startBlocks() {
  const canvas = find("blocks-canvas");
  canvas.addEventListener("pointermove", hoverBlocks);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", keyBlocks);
  canvas.addEventListener("blur", hideTip);
  makeZoomable(canvas, () => [blocks.left, blocks.right],
    (event) => chooseBlock(blockAt(...place(event)) || null));
  find("layout").addEventListener("change", () =>
    setLayout(find("layout").value));
  find("blocks-search").addEventListener("input", searchBlocks);
}
