// SPDX-License-Identifier: Apache-2.0
// Memory by category over time, with what is reserved and the card's limit.
"use strict";

let timelineChart = null;

// One pass over the points for all lines: {x, y} with x in seconds.
function timelineData(points) {
  const names = sortCategories(new Set(points.flatMap((p) =>
    Object.keys(p.categories || {}))));
  const start = points[0].time_ns;
  const at = (p) => (p.time_ns - start) / 1e9;
  const line = (value) => points.map((p) => ({x: at(p), y: value(p)}));
  if (!names.length)
    return {start, areas: [["allocated", "activation",
      line((p) => p.allocated)]], reserved: line((p) => p.reserved)};
  return {
    start,
    areas: names.map((name) =>
      [name, name, line((p) => (p.categories || {})[name] || 0)]),
    reserved: line((p) => p.reserved),
  };
}

function areaSet([label, category, data]) {
  const color = colorOf(category);
  return {label, data, fill: true, stack: "held", backgroundColor: color,
    borderColor: color, borderWidth: 0, pointRadius: 0, pointHitRadius: 0,
    stepped: "before"};
}

function lineSet(label, data, color, dash, stack) {
  return {label, data, stack, fill: false, borderColor: color,
    backgroundColor: color, borderWidth: 1.5, borderDash: dash,
    pointRadius: 0, pointHitRadius: 0, stepped: "before"};
}

// A step between two round numbers of bytes: 1, 2 or 5 of a power of two's unit.
function byteStep(most, lines) {
  let step = 1;
  while (most / step > lines)
    step *= 2;
  return step;
}

function timelineSets(data, device, most) {
  const sets = data.areas.map(areaSet);
  sets.push(lineSet("reserved", data.reserved, themeColor("text"), [], "r"));
  // A limit far above would press all else flat.
  if (device.capacity_bytes < 2 * most) {
    const last = data.reserved[data.reserved.length - 1].x;
    sets.push(lineSet("capacity", [{x: 0, y: device.capacity_bytes},
      {x: last, y: device.capacity_bytes}], themeColor("fails"), [6, 4], "c"));
  }
  return sets;
}

function tipTitle(items, start, phases) {
  const ns = items[0].parsed.x * 1e9 + start;
  const phase = phases.find((p) => p.start_ns <= ns && ns <= p.end_ns);
  return formatTime(items[0].parsed.x * 1e9) +
    (phase ? ` · step ${phase.step}, ${phase.phase}` : "");
}

// Where each phase begins and what it is, lightly behind the lines.
function phaseMarks(phases, start) {
  return {
    id: "phases",
    beforeDatasetsDraw(chart) {
      const {ctx, chartArea: area, scales: {x}} = chart;
      ctx.save();
      ctx.font = "11px system-ui, sans-serif";
      ctx.fillStyle = ctx.strokeStyle = themeColor("dim");
      let free = area.left;
      for (const p of phases) {
        const from = x.getPixelForValue((p.start_ns - start) / 1e9);
        const wide = x.getPixelForValue((p.end_ns - start) / 1e9) - from;
        const width = ctx.measureText(p.phase).width;
        if (from < free || wide < width + 6 || from < area.left - 1)
          continue;
        ctx.globalAlpha = 0.35;
        ctx.fillRect(from, area.top, 1, area.bottom - area.top);
        ctx.globalAlpha = 1;
        ctx.fillText(p.phase, from + 3, area.top - 4);
        free = from + width;
      }
      ctx.restore();
    },
  };
}

function timelineOptions(most, start, phases) {
  const dim = themeColor("dim"), grid = {color: themeColor("line")};
  return {
    animation: false, normalized: true, parsing: false,
    maintainAspectRatio: false, responsive: true,
    layout: {padding: {top: 16}},
    interaction: {mode: "index", intersect: false, axis: "x"},
    scales: {
      x: {type: "linear", grid, bounds: "data",
        ticks: {color: dim, maxRotation: 0,
          callback: (value) => formatTime(value * 1e9)}},
      y: {stacked: true, beginAtZero: true, grid,
        ticks: {color: dim, stepSize: byteStep(most, 6),
          callback: (value) => formatBytes(value).replace(".00", "")}},
    },
    plugins: {
      legend: {position: "bottom", labels: {color: themeColor("text"),
        boxWidth: 12, boxHeight: 10, usePointStyle: false}},
      tooltip: {
        itemSort: (a, b) => b.datasetIndex - a.datasetIndex,
        filter: (item) => item.parsed.y > 0,
        callbacks: {
          title: (items) => items.length ? tipTitle(items, start, phases) : "",
          label: (item) =>
            ` ${item.dataset.label}: ${formatBytes(item.raw.y)}`,
          footer: (items) => "allocated: " + formatBytes(sum(items
            .filter((item) => item.dataset.fill).map((item) => item.raw.y))),
        },
      },
    },
  };
}

function showTimeline(device) {
  const points = device.timeline || [], phases = device.phases || [];
  find("timeline").hidden = points.length < 2;
  if (timelineChart)
    timelineChart.destroy();
  timelineChart = null;
  if (points.length < 2)
    return;
  const data = timelineData(points);
  const most = points.reduce((m, p) => Math.max(m, p.reserved, p.allocated), 0);
  timelineChart = new Chart(find("timeline-canvas"), {
    type: "line",
    data: {datasets: timelineSets(data, device, most)},
    options: timelineOptions(most, data.start, phases),
    plugins: [phaseMarks(phases, data.start)],
  });
}
