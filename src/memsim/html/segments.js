// SPDX-License-Identifier: Apache-2.0
// The allocator's segments at the peak, laid end to end in lines as text is,
// each pool and stream by itself, and what lies in them; gaps are hatched.
"use strict";

const LINES = 22; // about so many, if they were all in one pool
const LINE_HEIGHT = 18, LINE_GAP = 4, TITLE_HEIGHT = 24, SEGMENT_GAP = 2;
const POOLS_SHOWN = 60;
const map = {pools: [], pieces: [], lines: new Map(), scale: 1, width: 0,
  height: 0, chosen: -1};

const isFree = (block) => block.state === "free";

function poolName(segment) {
  const pool = String(segment.pool), stream = String(segment.stream);
  return (pool === "0,0" ? "default pool" : `pool ${visible(pool)}`) +
    (Number(stream) ? `, stream ${visible(stream)}` : ", default stream") +
    (segment.kind ? `, ${visible(segment.kind)} blocks` : "");
}

function poolsOf(segments) {
  const pools = new Map();
  for (const segment of segments) {
    const name = poolName(segment);
    if (!pools.has(name))
      pools.set(name, {name, segments: [], bytes: 0, free: 0, pieces: 0,
        largest: 0});
    const pool = pools.get(name);
    pool.segments.push(segment);
    pool.bytes += segment.bytes;
    pool.free += segment.bytes - segment.allocated_bytes || 0;
    pool.largest = Math.max(pool.largest, segment.largest_cached_bytes || 0);
    pool.pieces += segment.cached_pieces || 0;
  }
  const sorted = [...pools.values()].sort((a, b) => b.bytes - a.bytes);
  for (const pool of sorted)
    pool.segments.sort((a, b) => b.bytes - a.bytes);
  return sorted;
}

// What makes a request fail that would fit in the sum.
function tellFragmentation(pools) {
  const bytes = sum(pools.map((p) => p.bytes));
  const free = sum(pools.map((p) => p.free));
  const count = sum(pools.map((p) => p.segments.length));
  const told = `${plural(count, "segment")}, ${formatBytes(bytes)} reserved. `;
  if (!free)
    return told + "All of it is in use.";
  const pieces = sum(pools.map((p) => p.pieces));
  return told + `${formatBytes(free)} (${formatPercent(free, bytes)}) is ` +
    `free${pieces ? `, in ${plural(pieces, "piece")}` : ""}, the largest of ` +
    `${formatBytes(Math.max(...pools.map((p) => p.largest)))}: a request ` +
    "above that needs a new segment.";
}

// The block's place on the lines; it may go on at the next line's beginning.
function putBlock(segment, block, from, bytes, top) {
  let at = from;
  const end = from + bytes / map.scale;
  while (at < end) {
    const line = Math.floor(at / map.width + 1e-9);
    const stop = Math.min(end, (line + 1) * map.width);
    const y = top + line * (LINE_HEIGHT + LINE_GAP);
    const piece = {segment, block, x: at - line * map.width, y,
      width: stop - at};
    if (!map.lines.has(y))
      map.lines.set(y, []);
    map.lines.get(y).push(piece);
    map.pieces.push(piece);
    if (stop <= at)
      break;
    at = stop;
  }
}

function putPool(pool, top) {
  let at = 0;
  for (const segment of pool.segments) {
    const long = segment.bytes / map.scale, left = map.width - at % map.width;
    if (long > left)
      at += left % map.width;
    const blocks = segment.blocks || [];
    putBlock(segment, null, at, segment.bytes, top);
    for (const block of blocks)
      putBlock(segment, block, at + block.offset / map.scale, block.bytes, top);
    at += Math.max(long, 1) + SEGMENT_GAP;
  }
  return top + Math.ceil(at / map.width) * (LINE_HEIGHT + LINE_GAP);
}

function mapLayOut(width) {
  const bytes = sum(map.pools.map((p) => p.bytes));
  map.width = width;
  map.scale = bytes / LINES / width;
  map.pieces = [];
  map.lines.clear();
  let top = 0;
  for (const pool of map.pools) {
    pool.top = top;
    top = putPool(pool, top + TITLE_HEIGHT) + LINE_GAP;
  }
  map.height = top;
}

function hatch(context) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const pen = tile.getContext("2d");
  pen.strokeStyle = FREE_INK[theme.name()];
  pen.beginPath();
  for (const x of [-3, 3, 9]) {
    pen.moveTo(x - 4, 7);
    pen.lineTo(x + 4, -1);
  }
  pen.stroke();
  return context.createPattern(tile, "repeat");
}

function drawPieces(context) {
  const back = themeColor("head"), gaps = hatch(context);
  let ink = null; // to set it is slow, when there are 100 000
  for (const {block, x, y, width} of map.pieces) {
    const seen = block && !isFree(block) && width > 3 ? width - 1 : width;
    const next = !block ? back : isFree(block) ? gaps
      : block.state === "mixed" ? COLORS.cached
        : colorOf(block.category || "in_use");
    if (next !== ink)
      context.fillStyle = ink = next;
    context.fillRect(x, y, Math.max(seen, 0.3), LINE_HEIGHT);
  }
}

function drawSegments() {
  const canvas = find("segments-canvas");
  const width = canvas.parentElement.clientWidth;
  if (!map.pools.length || !width)
    return;
  if (width !== map.width)
    mapLayOut(width);
  canvas.style.width = width + "px";
  canvas.style.height = map.height + "px";
  const context = drawOn(canvas, width, map.height);
  context.fillStyle = themeColor("text");
  for (const pool of map.pools)
    context.fillText(cut(context, `${pool.name}: ${formatBytes(pool.bytes)}, ` +
      `${formatBytes(pool.free)} free`, width), 0, pool.top + 16);
  drawPieces(context);
  drawChosenPiece(context);
}

function drawChosenPiece(context) {
  const piece = map.pieces[map.chosen];
  if (!piece)
    return;
  context.strokeStyle = themeColor("accent");
  context.lineWidth = 2;
  context.strokeRect(piece.x + 1, piece.y + 1, Math.max(piece.width - 2, 2),
    LINE_HEIGHT - 2);
}

// The last piece there: a segment's own comes before its blocks'.
function pieceAt(x, y) {
  const line = map.lines.get([...map.lines.keys()].find((top) =>
    y >= top && y < top + LINE_HEIGHT)) || [];
  return line.findLast((p) => x >= p.x && x < p.x + p.width);
}

function tellPiece({segment, block}, x, y) {
  const lines = [["", "segment", formatBytes(segment.bytes)],
    `${poolName(segment)}, at ${visible(segment.address)}`];
  if (block && isFree(block))
    lines.unshift(["", "free", formatBytes(block.bytes)]);
  else if (block)
    lines.unshift(shorten(block.module || (block.category ? NO_MODULE : ""),
      300), [colorOf(block.category || "in_use"),
      wordsOf(block.category || "in use"), formatBytes(block.bytes)],
    block.label && shorten(block.label, 200),
    block.operator && shorten(block.operator, 200));
  showTip(lines, x, y);
}

function hoverSegments(event) {
  const piece = pieceAt(...place(event));
  if (piece)
    tellPiece(piece, event.clientX, event.clientY);
  else
    hideTip();
}

function keySegments(event) {
  const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 20, ArrowUp: -20}[
    event.key];
  if (!step)
    return;
  event.preventDefault();
  let at = Math.max(0, Math.min(map.pieces.length - 1, map.chosen + step));
  while (map.pieces[at + Math.sign(step)] && !map.pieces[at].block)
    at += Math.sign(step);
  map.chosen = at;
  drawSegments();
  const box = find("segments-canvas").getBoundingClientRect();
  const piece = map.pieces[at];
  tellPiece(piece, box.left + piece.x + Math.min(piece.width, 20),
    box.top + piece.y + 10);
}

// What the page was not given.
function tellLeftOut(segments, pools) {
  const blocks = sum(segments.map((s) => s.blocks_dropped || 0));
  const words = [];
  if (blocks)
    words.push(`${plural(blocks, "block")} of the last segments are left out.`);
  if (pools.length > POOLS_SHOWN)
    words.push(`The largest ${POOLS_SHOWN} pools are drawn.`);
  return words.join(" ");
}

function showSegments(segments, device) {
  map.device = device;
  const pools = poolsOf(segments);
  find("segments").hidden = !pools.length;
  Object.assign(map, {pools: pools.slice(0, POOLS_SHOWN), width: 0,
    chosen: -1});
  if (!pools.length)
    return;
  find("fragmentation").textContent = tellFragmentation(pools);
  find("segments-more").textContent = tellLeftOut(segments, pools);
  fillTable("pools", pools.length > 1 ? pools : []);
  drawSegments();
}

function startSegments() {
  const canvas = find("segments-canvas");
  canvas.addEventListener("pointermove", hoverSegments);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("keydown", keySegments);
  canvas.addEventListener("click", (event) => {
    const piece = pieceAt(...place(event));
    if (piece && piece.block)
      showBlock(map.device, piece.block);
  });
  canvas.addEventListener("blur", () => {
    map.chosen = -1;
    hideTip();
    drawSegments();
  });
}
