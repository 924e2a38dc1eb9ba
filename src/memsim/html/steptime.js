// SPDX-License-Identifier: Apache-2.0
// How long a step takes, of what parts, on what; time beside memory.
"use strict";

// Paul Tol's "muted" and "light" again, by what operations do.
const FAMILY_COLORS = {
  gemm: "#4477aa", attention: "#aa4499", convolution: "#228866",
  elementwise: "#ddaa33", strided: "#eedd88", reduce: "#cc6677",
  norm: "#de9aa6", softmax: "#999933", index: "#88ccee", sort: "#77aadd",
  optimizer: "#44aa99", pool: "#bbcc33", copy: "#99ddff", set: "#a3acb5",
  collective: "#6655bb", other: "#bbaa99",
};

function familyColor(family) {
  const name = String(family).split("_")[0];
  return Object.hasOwn(FAMILY_COLORS, name) ? FAMILY_COLORS[name]
    : FAMILY_COLORS.other;
}

// The parts of a step: name, colour, what it is, value in a step and, where
// there is one, in the profile that was imported.
const STEP_PARTS = [
  ["Compute", "#4477aa", (s) => s.compute_ns - s.overlapped_comm_ns,
    (m) => m.compute_ns - m.overlapped_comm_ns],
  ["Compute beside communication", "#aa4499", (s) => s.overlapped_comm_ns,
    (m) => m.overlapped_comm_ns],
  ["Communication, exposed", "#6655bb", (s) => s.exposed_comm_ns,
    (m) => m.exposed_comm_ns],
  ["Copies, exposed", "#99ddff", (s) => s.exposed_copy_ns,
    (m) => m.exposed_copy_ns],
  ["Waits for the host", "#cc6677", (s) => s.host_bound_ns, undefined],
  ["Pipeline bubble", "#eedd88", (s) => s.bubble_ns || 0, undefined],
  ["Gaps, waits of streams", "#a3acb5", (s) => s.other_ns, undefined],
];

function stepParts(step) {
  return STEP_PARTS.map(([label, color, value, measured]) => ({label, color,
    ns: value(step), measured: step.measured && measured
      ? measured(step.measured) : undefined}))
    .filter((part) => part.ns > 0 || part.measured > 0);
}

function timeFigure(label, value, hint) {
  const box = element("div");
  box.append(element("dt", label), element("dd", value),
    element("dd", hint, "hint"));
  return box;
}

function throughputFigure(throughput) {
  const {tokens, tokens_per_second: tokensRate, samples,
    samples_per_second: samplesRate} = throughput;
  const rate = (value) =>
    value.toLocaleString("en", {maximumSignificantDigits: 4});
  return timeFigure("Throughput", tokens ? `${rate(tokensRate)} tokens/s`
    : `${rate(samplesRate)} samples/s`,
  `${tokens ? `${rate(samplesRate)} samples/s; ` : ""}` +
    `${tokens ? `${tokens} ids` : `${samples} samples`} given to ` +
    `${throughput.module} in a step`);
}

function showTimeFigures(time, step) {
  const boxes = [timeFigure("Step", formatTime(step.duration_ns),
    `${formatTime(step.low_ns)} to ${formatTime(step.high_ns)}`)];
  if (step.measured_ns)
    boxes.push(timeFigure("In the profile", formatTime(step.measured_ns),
      `replayed ${(100 * (step.duration_ns / step.measured_ns - 1))
        .toFixed(2)}%`));
  if (time.throughput)
    boxes.push(throughputFigure(time.throughput));
  if (time.mfu > 0)
    boxes.push(timeFigure("MFU", formatPercent(time.mfu, 1),
      "of the GPU's peak arithmetic"));
  if (step.sm_utilization !== undefined)
    boxes.push(timeFigure("SMs with work",
      formatPercent(step.sm_utilization, 1), "on average over the step"));
  boxes.push(timeFigure("Waits for the host",
    formatPercent(step.host_bound_ns, step.duration_ns) || "0%",
    "of the step"));
  find("steptime-figures").replaceChildren(...boxes);
}

function timePiece(part, whole) {
  const piece = element("i");
  piece.style.width = `${100 * part.ns / whole}%`;
  piece.style.background = part.color;
  tipOn(piece, [[part.color, part.label, formatTime(part.ns)],
    `${formatPercent(part.ns, whole)} of the step`]);
  return piece;
}

function timeLegend(part, step) {
  const item = element("li");
  item.append(swatch(part.color), element("span", part.label +
    (part.measured === undefined ? ""
      : ` (in the profile ${formatTime(part.measured)})`)),
    element("b", formatTime(part.ns)),
    element("em", formatPercent(part.ns, step.duration_ns)));
  return item;
}

function showTimeBar(step) {
  const parts = stepParts(step);
  find("steptime-bar").setAttribute("aria-label", parts.map((part) =>
    `${part.label} ${formatTime(part.ns)}`).join(", "));
  find("steptime-bar").replaceChildren(
    ...parts.map((part) => timePiece(part, step.duration_ns)));
  find("steptime-legend").replaceChildren(
    ...parts.map((part) => timeLegend(part, step)));
}

function showPath(time) {
  const rows = (time.critical_path || []).slice(0, 8);
  const whole = sum((time.critical_path || []).map((row) => row.ns));
  find("path").hidden = !rows.length;
  find("path-list").replaceChildren(...rows.map((row) => {
    const item = element("li"), bar = element("span", undefined, "meter");
    const fill = element("i");
    fill.style.width = `${100 * row.ns / whole}%`;
    bar.append(fill);
    const name = element("span", shorten(row.what, 200), "name");
    name.title = shorten(row.what, 400);
    item.append(name, bar,
      element("b", formatTime(row.ns)),
      element("em", formatPercent(row.ns, whole)));
    return item;
  }));
}

function sourcesOf(time) {
  const words = Object.entries(time.basis || {})
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${Math.round(100 * share)}% ${visible(name)}`);
  return words.length ? `Device time: ${words.join(", ")}.` : "";
}

// Time and memory of an operator: both lists name it alike.
function operatorRows(result, device) {
  const rows = new Map(), time = result.time || {};
  const row = (name) => {
    if (!rows.has(name))
      rows.set(name, {name, whole: time.step_ns});
    return rows.get(name);
  };
  for (const o of time.by_operator || [])
    Object.assign(row(o.operator), {ns: o.ns, operations: o.operations});
  for (const thing of device?.things_at_peak || []) {
    const r = row(thing.label);
    r.bytes = (r.bytes || 0) + thing.bytes;
    r.blocks = (r.blocks || 0) + thing.count;
  }
  return [...rows.values()];
}

const stepTimeColumn = (title, key) => ({title, value: (row) => row[key] ?? -1,
  show: (row) => row[key] === undefined ? "–" : formatTime(row[key])});

const operationsColumn = {title: "Operations",
  value: (row) => row.operations ?? -1,
  show: (row) => row.operations === undefined ? "–"
    : formatCount(Math.round(10 * row.operations) / 10)};

function makeOperators() {
  return new Table("operators", [textColumn("Operator", "name"),
    stepTimeColumn("Time of a step", "ns"), percentColumn("Share", "ns", "whole"),
    operationsColumn, bytesColumn("Memory at the peak", "bytes"),
    countColumn("Blocks", "blocks")], 1);
}

// The time of a step that each of the modules' ROWS takes.
function addModuleTimes(rows, result) {
  const times = new Map((result.time?.by_module || []).map((m) =>
    [m.module, m.ns]));
  for (const row of rows)
    row.ns = times.get(row.name);
  return rows;
}

const moduleTimeColumn = stepTimeColumn("Time of a step", "ns");

// The rank whose step is shown: RANK, unless it has none.
function showStepTime(result, rank, device) {
  const time = result.time;
  const slowest = (result.ranks || []).find((r) =>
    r.steps?.[time?.step_index]?.duration_ns === time?.step_ns);
  const own = rank?.step_timeline || rank?.steps?.length ? rank : slowest;
  const index = own?.step_timeline?.step_index ?? time?.step_index;
  const step = own?.steps?.[index];
  find("steptime").hidden = !time || !step;
  if (time && step) {
    showTimeFigures(time, step);
    showTimeBar(step);
    showPath(time);
    find("steptime-basis").textContent = sourcesOf(time);
  }
  const rows = time ? operatorRows(result, device) : [];
  find("operators").hidden = !rows.length;
  tables.operators.setRows(rows);
  showSteps(result, own, step);
}
