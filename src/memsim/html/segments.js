// SPDX-License-Identifier: Apache-2.0
// The allocator's segments at the peak, one line each, and what lies in them.
"use strict";

const SEGMENT_ROW = 14;
const SEGMENT_GAP = 3;
const SEGMENTS_SHOWN = 2000;
const segmentMap = {rows: [], scale: 1};

const isFree = (block) => block.state === "free" || block.state === "inactive";

// How much lies free in pieces, and the largest of them: what makes a request
// fail that would fit in the sum.
function tellFragmentation(segments) {
  const free = segments.flatMap((s) => (s.blocks || []).filter(isFree)
    .map((b) => b.bytes));
  const reserved = sum(segments.map((s) => s.bytes));
  const whole = sum(free);
  if (!whole)
    return `${segments.length} segments, ${formatBytes(reserved)}, all in use.`;
  const largest = free.reduce((a, b) => Math.max(a, b), 0);
  return `${segments.length} segments, ${formatBytes(reserved)}; ` +
    `${formatBytes(whole)} (${formatPercent(whole, reserved)}) is free in ` +
    `${free.length} pieces, the largest ${formatBytes(largest)}: a request ` +
    "above that needs a new segment.";
}

function drawBlock(context, block, y) {
  const x = block.offset * segmentMap.scale;
  const width = Math.max(block.bytes * segmentMap.scale, 0.5);
  if (isFree(block))
    return;
  context.fillStyle = colorOf(block.category || "other");
  context.fillRect(x, y, width > 2 ? width - 0.5 : width, SEGMENT_ROW);
}

function drawSegments() {
  const canvas = find("segments-canvas");
  const width = canvas.parentElement.clientWidth;
  if (!segmentMap.rows.length || !width)
    return;
  const height = segmentMap.rows.length * (SEGMENT_ROW + SEGMENT_GAP);
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = drawOn(canvas, width, height);
  segmentMap.scale = width / segmentMap.rows[0].bytes;
  segmentMap.rows.forEach((segment, i) => {
    const y = i * (SEGMENT_ROW + SEGMENT_GAP);
    context.fillStyle = themeColor("line");
    context.fillRect(0, y, Math.max(segment.bytes * segmentMap.scale, 1),
      SEGMENT_ROW);
    for (const block of segment.blocks || [])
      drawBlock(context, block, y);
  });
}

function hoverSegments(event) {
  const [x, y] = place(event);
  const segment = segmentMap.rows[Math.floor(y / (SEGMENT_ROW + SEGMENT_GAP))];
  const offset = x / segmentMap.scale;
  if (!segment || offset > segment.bytes) {
    hideTip();
    return;
  }
  const block = (segment.blocks || []).find((b) =>
    offset >= b.offset && offset < b.offset + b.bytes);
  const lines = [`segment of ${formatBytes(segment.bytes)}, ` +
    `stream ${segment.stream ?? 0}, pool ${segment.pool ?? "default"}`];
  if (block)
    lines.unshift(isFree(block) ? `free, ${formatBytes(block.bytes)}`
      : [block.module || NO_MODULE, block.category, block.label,
        formatBytes(block.bytes)].filter(Boolean).join("\n"));
  showTip(lines.join("\n"), event);
}

function showSegments(device) {
  const segments = device.segments_at_peak || [];
  find("segments").hidden = !segments.length;
  segmentMap.rows = [...segments].sort((a, b) => b.bytes - a.bytes)
    .slice(0, SEGMENTS_SHOWN);
  if (!segments.length)
    return;
  find("fragmentation").textContent = tellFragmentation(segments) +
    (segments.length > SEGMENTS_SHOWN
      ? ` The largest ${SEGMENTS_SHOWN} are shown.` : "");
  drawSegments();
}

function startSegments() {
  const canvas = find("segments-canvas");
  canvas.addEventListener("mousemove", hoverSegments);
  canvas.addEventListener("mouseleave", hideTip);
}
