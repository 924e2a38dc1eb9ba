// SPDX-License-Identifier: Apache-2.0
// Memory by category over time, with what is reserved and the GPU's limit.
"use strict";

const POINTS_SHOWN = 2000;
const timeline = {chart: null, device: null, points: [], start: 0};

// Of more points than a screen has columns, each stretch keeps its highest.
function thin(points, most) {
  if (points.length <= most)
    return points;
  return Array.from({length: most}, (_, i) => {
    const end = Math.floor((i + 1) * points.length / most);
    let best = Math.floor(i * points.length / most);
    for (let k = best + 1; k < end; k++)
      if (points[k].allocated > points[best].allocated)
        best = k;
    return points[best];
  });
}

const secondsAt = (ns) => (ns - timeline.start) / 1e9;

function lineOf(value) {
  return timeline.points.map((p) => ({x: secondsAt(p.time_ns), y: value(p)}));
}

function areaSet(category) {
  const color = colorOf(category);
  return {label: wordsOf(category), fill: true, stack: "held",
    data: lineOf((p) => (p.categories || {})[category] || 0),
    backgroundColor: color, borderColor: color, borderWidth: 1,
    pointStyle: "rectRounded", pointRadius: 0, pointHitRadius: 0,
    stepped: "before"};
}

function lineSet(label, data, color, dash) {
  return {label, data, stack: label, fill: false, borderColor: color,
    backgroundColor: color, borderWidth: 1.5, borderDash: dash,
    pointStyle: "line", pointRadius: 0, pointHitRadius: 0, stepped: "before"};
}

function timelineSets(most) {
  const device = timeline.device;
  const names = new Set(timeline.points.flatMap((p) =>
    Object.keys(p.categories || {})));
  const sets = sortCategories(names).map(areaSet);
  sets.push(lineSet("reserved", lineOf((p) => p.reserved), themeColor("text"),
    []));
  // A limit far above would press all else flat.
  if (device.capacity_bytes < 2 * most)
    sets.push(lineSet("the GPU", lineOf(() => device.capacity_bytes),
      themeColor("bad"), [6, 4]));
  return sets;
}

function phaseAt(ns) {
  return (timeline.device.phases || []).find((p) =>
    p.start_ns <= ns && ns < p.end_ns);
}

function tipAt(index, x, y) {
  const point = timeline.points[index], phase = phaseAt(point.time_ns);
  const parts = point.categories || {};
  showTip([
    formatTime(point.time_ns - timeline.start) +
      (phase ? ` · step ${phase.step}, ${phase.phase}` : ""),
    ...sortCategories(Object.keys(parts)).reverse().map((name) =>
      [colorOf(name), wordsOf(name), formatBytes(parts[name])]),
    ["", "allocated", formatBytes(point.allocated)],
    ["", "reserved", formatBytes(point.reserved)],
  ], x, y);
}

function followTip({chart, tooltip}) {
  const at = tooltip.dataPoints?.[0];
  if (!tooltip.opacity || !at) {
    hideTip();
    return;
  }
  const box = chart.canvas.getBoundingClientRect();
  timeline.index = at.dataIndex;
  tipAt(at.dataIndex, box.left + tooltip.caretX, box.top + tooltip.caretY);
}

function drawMark(context, area, x, text) {
  const wide = context.measureText(text).width;
  context.globalAlpha = 0.55;
  context.fillRect(x, area.top, 1, area.bottom - area.top);
  context.globalAlpha = 1;
  context.fillText(text, Math.min(x + 4, area.right - wide), area.top - 6);
  return x + wide + 8;
}

// Where each phase begins, as far as there is room to say so; the peak always.
const marks = {
  id: "marks",
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    const {peak, phases = []} = timeline.device;
    ctx.save();
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = themeColor("dim");
    let free = area.left - 1;
    for (const p of phases) {
      const from = x.getPixelForValue(secondsAt(p.start_ns));
      const wide = x.getPixelForValue(secondsAt(p.end_ns)) - from;
      if (p.phase === "other" || from < free || from > area.right ||
          wide < ctx.measureText(p.phase).width + 8)
        continue;
      free = drawMark(ctx, area, from, p.phase);
    }
    const active = chart.getActiveElements()[0];
    if (active)
      ctx.fillRect(active.element.x, area.top, 1, area.bottom - area.top);
    const top = peak ? x.getPixelForValue(secondsAt(peak.time_ns)) : -1;
    if (top >= area.left && top <= area.right) {
      ctx.fillStyle = themeColor("text");
      ctx.beginPath();
      ctx.moveTo(top - 5, area.top - 2);
      ctx.lineTo(top + 5, area.top - 2);
      ctx.lineTo(top, area.top + 6);
      ctx.fill();
    }
    ctx.restore();
  },
};

// A step between lines that is round in binary units.
function byteStep(most, lines) {
  let step = 1;
  while (most / step > lines)
    step *= 2;
  return step;
}

function timelineOptions(most) {
  const dim = themeColor("dim"), grid = {color: themeColor("line")};
  const last = timeline.points[timeline.points.length - 1];
  return {
    animation: false, normalized: true, parsing: false,
    maintainAspectRatio: false, responsive: true,
    layout: {padding: {top: 20}},
    interaction: {mode: "index", intersect: false, axis: "x"},
    scales: {
      x: {type: "linear", grid: {display: false}, min: 0,
        max: secondsAt(last.time_ns),
        ticks: {color: dim, maxRotation: 0, includeBounds: false,
          autoSkipPadding: 30,
          callback: (value) => formatTick(Math.round(value * 1e9))}},
      y: {stacked: true, beginAtZero: true, grid,
        ticks: {color: dim, stepSize: byteStep(most, 6),
          callback: formatRound}},
    },
    plugins: {
      legend: {position: "bottom", labels: {color: themeColor("text"),
        usePointStyle: true, boxWidth: 14, boxHeight: 10, padding: 14}},
      tooltip: {enabled: false, external: followTip},
    },
  };
}

// The whole run or one of its steps.
function showSpan() {
  const step = find("span").value, device = timeline.device;
  const phases = (device.phases || []).filter((p) => String(p.step) === step);
  const x = timeline.chart.options.scales.x;
  const last = timeline.points[timeline.points.length - 1];
  x.min = phases.length ? Math.max(0, secondsAt(phases[0].start_ns)) : 0;
  x.max = secondsAt(phases.length ? phases[phases.length - 1].end_ns
    : last.time_ns);
  timeline.chart.update();
}

function listSpans(device) {
  const steps = [...new Set((device.phases || []).map((p) => p.step))];
  const option = (value, text) => {
    const e = element("option", text);
    e.value = value;
    return e;
  };
  find("span").replaceChildren(option("", "Whole run"),
    ...steps.map((step) => option(step, `Step ${step}`)));
}

function moveAlong(event) {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20}[
    event.key];
  if (!step || !timeline.chart)
    return;
  event.preventDefault();
  const {min, max} = timeline.chart.scales.x;
  const box = timeline.chart.canvas.getBoundingClientRect();
  const most = timeline.points.length - 1;
  timeline.index = Math.min(most, Math.max(0, timeline.index + step));
  const at = secondsAt(timeline.points[timeline.index].time_ns);
  tipAt(timeline.index, box.left + timeline.chart.scales.x.getPixelForValue(
    Math.min(max, Math.max(min, at))), box.top + box.height / 3);
}

// Draws again what was shown, in the theme's colours.
function drawTimeline() {
  if (timeline.chart)
    timeline.chart.destroy();
  timeline.chart = null;
  if (timeline.points.length < 2)
    return;
  const most = timeline.points.reduce((m, p) =>
    Math.max(m, p.reserved, p.allocated), 0);
  timeline.chart = new Chart(find("timeline-canvas"), {
    type: "line", data: {datasets: timelineSets(most)},
    options: timelineOptions(most), plugins: [marks],
  });
  showSpan();
}

function showTimeline(device) {
  const points = device.timeline || [];
  Object.assign(timeline, {device, points: thin(points, POINTS_SHOWN),
    start: points.length ? points[0].time_ns : 0, index: 0});
  find("timeline").hidden = points.length < 2;
  find("resolution").textContent = device.timeline_resolution_bytes
    ? `Turns of less than ${formatRound(device.timeline_resolution_bytes)} ` +
      "are not drawn." : "";
  listSpans(device);
  drawTimeline();
}

function startTimeline() {
  find("span").addEventListener("change", showSpan);
  find("timeline-canvas").addEventListener("keydown", moveAlong);
  find("timeline-canvas").addEventListener("blur", hideTip);
}
