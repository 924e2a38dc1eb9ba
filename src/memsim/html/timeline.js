// SPDX-License-Identifier: Apache-2.0
// Memory by category over time, with what is reserved and the GPU's limit.
"use strict";

const POINTS_SHOWN = 2000;
const timeline = {chart: null, device: null, all: [], points: [], start: 0,
  index: 0, most: 0};

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

function lineOf(value) {
  return timeline.points.map((p) => ({x: placeOf(p.event, p.time_ns),
    y: value(p)}));
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

// A limit far above would press all else flat.
const showsLimit = (device, most) => device.capacity_bytes < 2 * most;

function timelineSets(most) {
  const device = timeline.device;
  const names = new Set(timeline.points.flatMap((p) =>
    Object.keys(p.categories || {})));
  const sets = sortCategories(names).map(areaSet);
  sets.push(lineSet("reserved", lineOf((p) => p.reserved), themeColor("text"),
    []));
  if (showsLimit(device, most))
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
      (point.event === undefined ? "" : `, event ${formatCount(point.event)}`) +
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

// Where steps begin, if they can be told apart.
function drawRunEnds(context, area, x) {
  const {runs} = axis;
  context.fillStyle = themeColor("dim");
  context.globalAlpha = 0.35;
  for (const run of runs) {
    const [from, to] = spanOf(run).map((place) => x.getPixelForValue(place));
    if (from > area.left && from < area.right && to - from > 12)
      context.fillRect(from, area.top, 1, area.bottom - area.top);
  }
  context.globalAlpha = 1;
}

// Where each phase begins, as far as there is room to say so; the peak always.
const marks = {
  id: "marks",
  afterLayout: () => drawBlocksSoon(),
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    const {peak, phases = []} = timeline.device;
    ctx.save();
    ctx.font = "11px system-ui, sans-serif";
    ctx.fillStyle = themeColor("dim");
    let free = area.left - 1;
    for (const p of phases) {
      const from = x.getPixelForValue(placeOfTime(p.start_ns));
      const wide = x.getPixelForValue(placeOfTime(p.end_ns - 1)) - from;
      if (p.phase === "other" || !(from >= free) || from > area.right ||
          wide < ctx.measureText(p.phase).width + 8)
        continue;
      free = drawMark(ctx, area, from, p.phase);
    }
    drawRunEnds(ctx, area, x);
    const active = chart.getActiveElements()[0];
    if (active)
      ctx.fillRect(active.element.x, area.top, 1, area.bottom - area.top);
    const top = peak || axis.history ? x.getPixelForValue(placeOf(
      axis.history?.peak_event, peak?.time_ns ?? 0)) : -1;
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
  const {device} = timeline;
  const top = showsLimit(device, most) ? Math.max(most, device.capacity_bytes)
    : most;
  const dim = themeColor("dim"), grid = {color: themeColor("line")};
  return {
    animation: false, normalized: true, parsing: false,
    maintainAspectRatio: false, responsive: true,
    layout: {padding: {top: 20}},
    interaction: {mode: "index", intersect: false, axis: "x"},
    scales: {
      x: {type: "linear", grid: {display: false}, min: axis.from, max: axis.to,
        afterBuildTicks: (scale) => {
          scale.ticks = axisTicks(Math.max(2, scale.chart.width / 110));
        },
        ticks: {color: dim, maxRotation: 0, autoSkip: false,
          callback: (_, i, ticks) => ticks[i].label}},
      y: {stacked: true, beginAtZero: true, grid, max: top * 1.03,
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

// --- what is in sight --------------------------------------------------------

// The points in sight, and one to either side.
function pointsInSight() {
  const at = (p) => placeOf(p.event, p.time_ns);
  const {all} = timeline;
  let first = 0, last = all.length;
  while (first + 1 < last && at(all[first + 1]) <= axis.from)
    first++;
  while (last - 1 > first && at(all[last - 2]) >= axis.to)
    last--;
  return thin(all.slice(first, last), POINTS_SHOWN);
}

// Shows the part from FROM to TO of the axis in both charts.
function showSight(from, to) {
  setSight(from, to);
  timeline.points = pointsInSight();
  if (timeline.chart) {
    timeline.chart.data.datasets = timelineSets(timeline.most);
    Object.assign(timeline.chart.options.scales.x, {min: axis.from,
      max: axis.to});
    timeline.chart.update();
  }
  find("axis-hint").textContent = axisHint();
  find("span").value = spans().findIndex(([, span]) =>
    Math.abs(span[0] - axis.from) + Math.abs(span[1] - axis.to) <
      (axis.to - axis.from) / 1e6);
  drawBlocksSoon();
  saveLink();
}

function zoomSight(factor, at = (axis.from + axis.to) / 2) {
  showSight(at - (at - axis.from) * factor, at + (axis.to - at) * factor);
}

const panSight = (share) => showSight(
  axis.from + share * (axis.to - axis.from),
  axis.to + share * (axis.to - axis.from));

const showWhole = () => showSight(axis.lowest, axis.highest);

// Names and parts of the axis that can be chosen: the run and its steps.
function spans() {
  const whole = ["Whole run", [axis.lowest, axis.highest]];
  if (axis.runs.length && hasSteps())
    return [whole, ...axis.runs.map((run) =>
      [runName(run).replace(/^./, (c) => c.toUpperCase()), spanOf(run)])];
  const steps = new Map();
  for (const p of timeline.device?.phases || []) {
    const known = steps.get(p.step) || [Math.max(0, p.start_ns -
      axis.start), 0];
    steps.set(p.step, [known[0], p.end_ns - axis.start]);
  }
  return [whole, ...[...steps].map(([step, span]) => [`Step ${step}`, span])];
}

function listSpans() {
  find("span").replaceChildren(...spans().map(([name], i) => {
    const option = element("option", name);
    option.value = i;
    return option;
  }));
}

// --- the pointer and the keys, for each chart over this axis -----------------

function pressZoom(event) {
  const act = event.ctrlKey || event.metaKey ? undefined : {
    "+": () => zoomSight(0.5), "=": () => zoomSight(0.5),
    "-": () => zoomSight(2), "0": showWhole,
    a: () => panSight(-0.2), d: () => panSight(0.2)}[event.key];
  if (!act)
    return;
  event.preventDefault();
  hideTip();
  act();
}

// CANVAS gets zoom by drag, wheel and keys. AREA tells its left and right ends
// on the canvas, CLICK takes a click.
function makeZoomable(canvas, area, click) {
  const brush = element("div", undefined, "brush");
  let start = null;
  canvas.parentElement.append(brush);
  const valueAt = (x) => {
    const [left, right] = area();
    return axis.from + (Math.min(right, Math.max(left, x)) - left) *
      (axis.to - axis.from) / (right - left);
  };
  const end = () => {
    start = null;
    brush.style.display = "none";
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button)
      return;
    start = place(event)[0];
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const x = place(event)[0];
    if (start === null || Math.abs(x - start) < 5)
      return;
    hideTip();
    const [left, right] = area();
    const edges = [start, x].map((at) => Math.min(right, Math.max(left, at)));
    Object.assign(brush.style, {display: "block",
      left: `${canvas.offsetLeft + Math.min(...edges)}px`,
      width: `${Math.abs(edges[1] - edges[0])}px`,
      top: `${canvas.offsetTop}px`, height: `${canvas.offsetHeight}px`});
  });
  canvas.addEventListener("pointerup", (event) => {
    const x = place(event)[0], from = start;
    end();
    if (from === null)
      return;
    if (Math.abs(x - from) < 5)
      click?.(event);
    else
      showSight(...[valueAt(from), valueAt(x)].sort((a, b) => a - b));
  });
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("dblclick", showWhole);
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey &&
        document.activeElement !== canvas)
      return; // the page scrolls
    event.preventDefault();
    hideTip();
    if (event.shiftKey)
      panSight(event.deltaY / 1000);
    else
      zoomSight(Math.exp(event.deltaY / 400), valueAt(place(event)[0]));
  }, {passive: false});
  canvas.addEventListener("keydown", pressZoom);
}

function moveAlong(event) {
  const step = {ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20}[
    event.key];
  if (!step || !timeline.chart)
    return;
  event.preventDefault();
  const {x} = timeline.chart.scales, {points} = timeline;
  const at = (i) => placeOf(points[i].event, points[i].time_ns);
  const box = timeline.chart.canvas.getBoundingClientRect();
  timeline.index = Math.min(points.length - 1,
    Math.max(0, timeline.index + step));
  while (at(timeline.index) < axis.from && timeline.index < points.length - 1)
    timeline.index++;
  while (at(timeline.index) > axis.to && timeline.index > 0)
    timeline.index--;
  tipAt(timeline.index, box.left + x.getPixelForValue(at(timeline.index)),
    box.top + box.height / 3);
}

// --- a GPU -------------------------------------------------------------------

function chartConfig() {
  const {most} = timeline;
  return {type: "line", data: {datasets: timelineSets(most)},
    options: timelineOptions(most), plugins: [marks]};
}

// Draws again what was shown, in the theme's colours.
function drawTimeline() {
  if (timeline.chart)
    timeline.chart.destroy();
  timeline.chart = null;
  if (timeline.all.length < 2)
    return;
  timeline.chart = new Chart(find("timeline-canvas"), chartConfig());
  showSight(axis.from, axis.to);
}

// The axis NAME, with all of it in sight.
function chooseAxis(name) {
  const {device} = timeline;
  setAxis(name, device);
  timeline.all = axis.name === "clock" ? device.timeline || [] : axis.points;
  timeline.points = pointsInSight();
  timeline.most = timeline.all.reduce((most, p) =>
    Math.max(most, p.reserved, p.allocated), 0);
  timeline.start = axis.start;
  timeline.index = 0;
  find("axis").value = axis.name;
  listSpans();
  tellResolution(device);
  layOutBlocks();
  drawTimeline();
}

function showTimeline(device) {
  const points = device.timeline || [];
  timeline.device = device;
  find("timeline").hidden = points.length < 2;
  find("axis").hidden = !device.history;
  find("axis").querySelector("[value=steps]").hidden =
    !(device.history?.runs || []).some((run) => run.step !== undefined);
  chooseAxis("events");
}

// What the chart leaves out.
function tellResolution(device) {
  find("resolution").textContent = axis.name === "clock" &&
    device.timeline_resolution_bytes ? `Turns of less than ${formatRound(device.timeline_resolution_bytes)} ` +
      "are not drawn." : "";
}

function startTimeline() {
  const canvas = find("timeline-canvas");
  find("span").addEventListener("change", () =>
    showSight(...spans()[find("span").value][1]));
  find("axis").addEventListener("change", () =>
    chooseAxis(find("axis").value));
  find("timeline-in").addEventListener("click", () => zoomSight(0.5));
  find("timeline-out").addEventListener("click", () => zoomSight(2));
  find("timeline-all").addEventListener("click", showWhole);
  canvas.addEventListener("keydown", moveAlong);
  canvas.addEventListener("blur", hideTip);
  makeZoomable(canvas, () => {
    const {left, right} = timeline.chart.chartArea;
    return [left, right];
  });
}
