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
  ["Communication, exposed", "#6655bb",
    (s) => s.exposed_comm_ns - (s.peers_ns || 0), (m) => m.exposed_comm_ns],
  ["Waits for other ranks", "#bba9e0", (s) => s.peers_ns || 0, undefined],
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
  const {tokens, tokens_per_second: tokensRate, samples, job,
    samples_per_second: samplesRate} = throughput;
  const rate = (value) =>
    value.toLocaleString("en", {maximumSignificantDigits: 4});
  const given = `${tokens ? `${tokens} ids` : `${samples} samples`} given to ` +
    `${throughput.module} in a step`;
  if (job && job.ranks > 1) {
    const [word, all, each] = tokens
      ? ["tokens", job.tokens_per_second, job.tokens_per_second_per_gpu]
      : ["samples", job.samples_per_second, job.samples_per_second_per_gpu];
    return timeFigure("Throughput of a GPU", `${rate(each)} ${word}/s`,
      `${rate(all)} ${word}/s by ${formatCount(job.ranks)} ranks, if each ` +
      `has its own batch; rank ${throughput.rank}: ${given}`);
  }
  const several = (page.result.ranks || []).length > 1;
  return timeFigure(several ? `Throughput of rank ${throughput.rank}`
    : "Throughput", tokens ? `${rate(tokensRate)} tokens/s`
    : `${rate(samplesRate)} samples/s`,
  `${tokens ? `${rate(samplesRate)} samples/s; ` : ""}` + given);
}

function showTimeFigures(time, step) {
  const boxes = [timeFigure("Step", formatTime(step.duration_ns),
    `80% band: ${formatTime(step.low_ns)} to ${formatTime(step.high_ns)}`)];
  if (step.measured_ns)
    boxes.push(timeFigure("In the profile", formatTime(step.measured_ns),
      `replayed ${(100 * (step.duration_ns / step.measured_ns - 1))
        .toFixed(2)}%`));
  if (time.throughput)
    boxes.push(throughputFigure(time.throughput));
  if (time.mfu > 0)
    boxes.push(timeFigure("MFU", formatPercent(time.mfu, 1),
      "of the GPU's peak arithmetic"));
  if (time.energy_estimate)
    boxes.push(timeFigure("Energy (estimate)",
      `${time.energy_estimate.joules.toPrecision(3)} J`,
      `a GPU: ${time.energy_estimate.load_watts} W while it computes, ` +
      `${time.energy_estimate.idle_watts} W else`));
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
  const slowest = slowestRank(page.result);
  find("path").hidden = !rows.length;
  find("path-title").textContent = "The critical path: what must get faster" +
    (slowest && page.result.ranks.length > 1
      ? `; that of ${rankName(slowest.rank, membersOf(slowest)).toLowerCase()}, `
        + "the slowest" : "");
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

// What the prices rest on, in the summary's words.
const BASES = {measured: "measured",
  fitted: "fits of measurements on this GPU",
  borrowed: "fits of another GPU's measurements", estimated: "estimates",
  roofline: "the data sheet's limits",
  fallback: "a few microseconds each, for lack of a model"};

function sourcesOf(time) {
  const words = Object.entries(time.basis || {})
    .filter(([, share]) => share >= 0.005)
    .map(([name, share]) => `${Math.round(100 * share)}% ` +
      (Object.hasOwn(BASES, name) ? BASES[name] : visible(name)));
  const unknown = time.unknown >= 0.005
    ? ` ${Math.round(100 * time.unknown)}% of the operations have no cost ` +
      "model." : "";
  return (words.length ? `Prices of the device time: ${words.join(", ")}.`
    : "") + unknown;
}

// What the step would take where the CPU is no limit, if that matters.
function hostWarning(time, step) {
  const spared = time.step_ns - time.keeps_up_ns;
  if (!time.keeps_up_ns || spared < 0.05 * time.step_ns)
    return "";
  return `The GPU waits for the CPU in ${formatPercent(step.host_bound_ns,
    step.duration_ns) || "0%"} of the step. With a CPU that keeps up it takes ` +
    `${formatTime(time.keeps_up_ns)} (--host-speed 0).`;
}

const shortOperator = (name) => (name || "").replace(/^aten::/, "");

// What operators hold at the peak; what none allocated is in other tables.
function holderRows(device) {
  const rows = new Map();
  for (const thing of device?.things_at_peak || []) {
    const name = shortOperator(thing.operator);
    if (!name)
      continue;
    const row = rows.get(name) || {name, bytes: 0, blocks: 0,
      whole: device.peak_allocated_bytes};
    row.bytes += thing.bytes;
    row.blocks += thing.count || 0;
    rows.set(name, row);
  }
  return [...rows.values()];
}

const operatorRows = ({by_operator: rows = [], step_ns: whole}) =>
  rows.map((o) => ({name: o.operator, ns: o.ns, operations: o.operations,
    whole}));

const stepTimeColumn = (title, key) => ({title, value: (row) => row[key] ?? -1,
  show: (row) => row[key] === undefined ? "–" : formatTime(row[key])});

const operationsColumn = {title: "Operations",
  value: (row) => row.operations ?? -1,
  show: (row) => row.operations === undefined ? "–"
    : formatCount(Math.round(10 * row.operations) / 10)};

function makeOperators() {
  return new Table("operators", [textColumn("Kernels", "name"),
    stepTimeColumn("Time of a step", "ns"),
    percentColumn("Share", "ns", "whole"), operationsColumn], 1);
}

function makeHolders() {
  return new Table("holders", [textColumn("Operator", "name"),
    bytesColumn("At the peak", "bytes"),
    percentColumn("Share", "bytes", "whole"), countColumn("Blocks", "blocks")],
  1);
}

// The time of a step that each of the modules' ROWS takes.
function addModuleTimes(rows, result) {
  const times = new Map((result.time?.by_module || []).map((m) =>
    [m.module, m.ns]));
  for (const row of rows)
    row.ns = times.get(row.name);
  return rows;
}

const moduleTimeColumn = stepTimeColumn("In a step", "ns");

// The rank whose step is shown: RANK, unless it has none.
function showStepTime(result, rank, device) {
  const time = result.time;
  const slowest = slowestRank(result);
  const own = rank?.step_timeline || rank?.steps?.length ? rank : slowest;
  const step = stepOf(result, own);
  find("steptime").hidden = !time || !step;
  if (time && step) {
    showTimeFigures(time, step);
    showTimeBar(step);
    showPath(time);
    tellStep(result, rank, own);
    find("steptime-warning").textContent = own === slowest
      ? hostWarning(time, step) : "";
    find("steptime-basis").textContent = sourcesOf(time);
  }
  fillTable("operators", time ? operatorRows(time) : []);
  fillTable("holders", holderRows(device));
  showSteps(result, own, step);
}

// Whose step it is, where there are several ranks.
function tellStep(result, rank, own) {
  const several = (result.ranks || []).length > 1;
  find("steptime-title").textContent = several
    ? `A step of ${rankName(own.rank, membersOf(own)).toLowerCase()}`
    : "A step";
  find("steptime-whose").textContent = rank && own !== rank
    ? `No step of rank ${rank.rank} is known; this is the slowest rank's.`
    : several && own.rank !== result.time.slowest_rank
      ? `The job's step is that of the slowest rank, ` +
        `${result.time.slowest_rank}: ${formatTime(result.time.step_ns)}.`
      : "";
}
