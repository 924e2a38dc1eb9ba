// SPDX-License-Identifier: Apache-2.0
// The axis of memory over time and the part of it that is in sight: by the
// allocator's events, by steps of equal width, or by the host's clock. Steps
// that are alike are one, except by the clock.
"use strict";

const axis = {name: "clock", history: null, start: 0, runs: [], times: [],
  points: [], lowest: 0, highest: 1, from: 0, to: 1};

function runName(run) {
  if (run.step === undefined)
    return "before the first step";
  return run.count === 1 ? `step ${run.step}`
    : `steps ${run.step} to ${run.step + run.count - 1}, alike`;
}

const runLabel = (run) => run.step === undefined ? "start"
  : run.count === 1 ? `step ${run.step}`
    : `steps ${run.step}–${run.step + run.count - 1}`;

// A recording may have none.
const hasSteps = () => axis.runs.some((run) => run.step !== undefined);

// The last of ROWS whose KEY is not above VALUE, or the first.
function lastUpTo(rows, key, value) {
  let low = 0, high = rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (rows[middle][key] <= value)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// Where the event EVENT, at NS, is on the axis.
function placeOf(event, ns) {
  if (axis.name === "clock")
    return ns - axis.start;
  if (axis.name === "events" || !axis.runs.length)
    return event;
  const i = lastUpTo(axis.runs, "begin", event), run = axis.runs[i];
  return i + Math.min(1, Math.max(0, event - run.begin) /
    Math.max(1, run.end - run.begin));
}

// The events and times of all that is known, by time.
function timesOf({points, blocks}) {
  const times = points.map((p) => ({ns: p.time_ns, event: p.event}));
  blocks.born.forEach((event, i) => times.push({ns: blocks.born_ns[i],
    event}));
  return times.sort((a, b) => a.ns - b.ns);
}

// Where a time of the host is on the axis; NaN: in a step that is not drawn.
function placeOfTime(ns) {
  if (axis.name === "clock")
    return ns - axis.start;
  const run = axis.runs[lastUpTo(axis.runs, "begin_ns", ns)];
  if (run && run.count > 1 && ns >= run.first_end_ns && ns < run.end_ns)
    return NaN;
  const near = axis.times[lastUpTo(axis.times, "ns", ns)];
  return placeOf(near ? near.event : 0, ns);
}

// Memory after an event: HELD are bytes by category, in the order of KINDS.
class HeldPoint {
  constructor(event, timeNs, held, kinds) {
    Object.assign(this, {event, time_ns: timeNs, held, kinds, allocated: 0,
      reserved: 0, small: 0});
  }

  get categories() { // made where it is drawn: there are very many points
    const parts = {};
    this.held.forEach((bytes, i) => {
      if (bytes > 0)
        parts[this.kinds[i]] = bytes;
    });
    if (this.small)
      parts["smaller blocks"] = this.small;
    return parts;
  }
}

// Allocations and frees of BLOCKS in their order.
function changesOf({born, died, bytes, born_ns: bornNs, died_ns: diedNs}) {
  const changes = [];
  for (let i = 0; i < born.length; i++) {
    changes.push({event: born[i], ns: bornNs[i], i, bytes: bytes[i]});
    if (died[i] >= 0)
      changes.push({event: died[i], ns: diedNs[i], i, bytes: -bytes[i]});
  }
  return changes.sort((a, b) => a.event - b.event || a.ns - b.ns);
}

// Memory by category after each event, of the blocks; what they lack of what
// was allocated are smaller blocks.
function pointsOfBlocks({points, blocks, names, left_out: leftOut}) {
  const kinds = [...new Set(blocks.category)];
  const places = new Map(kinds.map((kind, i) => [kind, i]));
  const words = kinds.map((kind) => names[kind]);
  const changes = changesOf(blocks), made = [];
  const held = new Float64Array(kinds.length);
  let next = 0, small = 0, reserved = 0, sum = 0;
  changes.forEach((change, at) => {
    held[places.get(blocks.category[change.i])] += change.bytes;
    sum += change.bytes;
    if (changes[at + 1]?.event === change.event)
      return;
    for (; next < points.length && points[next].event <= change.event; next++) {
      reserved = points[next].reserved;
      if (leftOut && points[next].event === change.event)
        small = Math.max(0, points[next].allocated - sum);
    }
    const point = new HeldPoint(change.event, change.ns, held.slice(), words);
    made.push(Object.assign(point, {reserved, small, allocated: sum + small}));
  });
  return made;
}

// The part of the axis that RUN takes.
const spanOf = (run) => axis.name === "clock"
  ? [run.begin_ns - axis.start, run.first_end_ns - axis.start]
  : [placeOf(run.begin, 0), axis.name === "steps"
    ? axis.runs.indexOf(run) + 1 : run.end];

function setAxis(name, device) {
  const {history, timeline = []} = device;
  const last = timeline[timeline.length - 1];
  const runs = history?.runs || [];
  const usable = runs.length && history.points.length;
  axis.device = device;
  axis.history = usable ? history : null;
  axis.name = usable ? name : "clock";
  axis.start = timeline.length ? timeline[0].time_ns : 0;
  axis.runs = usable ? runs : [];
  axis.points = usable ? pointsOfBlocks(history) : [];
  axis.times = usable ? timesOf(history) : [];
  axis.lowest = 0;
  axis.highest = axis.name === "clock" ? (last ? last.time_ns - axis.start : 1)
    : axis.name === "steps" ? runs.length : runs[runs.length - 1].end;
  axis.highest = Math.max(axis.highest, axis.name === "steps" ? 1 : 2);
  axis.from = axis.lowest;
  axis.to = axis.highest;
}

const leastSpan = () => axis.name === "clock" ? 1000
  : axis.name === "steps" ? 0.002 : 4;

// Chooses the part in sight, as far as there is one.
function setSight(from, to) {
  const whole = axis.highest - axis.lowest;
  const length = Math.min(Math.max(to - from, leastSpan()), whole);
  axis.from = Math.min(Math.max(axis.lowest, from), axis.highest - length);
  axis.to = axis.from + length;
}

// --- ticks -------------------------------------------------------------------

// A round step, so that about COUNT fit into LENGTH.
function roundStep(length, count) {
  const wanted = length / count, power = 10 ** Math.floor(Math.log10(wanted));
  return [1, 2, 5, 10].find((n) => n * power >= wanted) * power;
}

// What ticks by the clock count from: the begin of the step that is in sight.
function clockOrigin() {
  const run = axis.runs[lastUpTo(axis.runs, "begin_ns",
    axis.from + axis.start + 1)];
  return run && axis.to + axis.start <= run.end_ns + 1 &&
    axis.from + axis.start >= run.begin_ns - 1 ? run.begin_ns - axis.start : 0;
}

// NS with the digits that tell ticks apart that are STEP apart.
function formatStepped(ns, step) {
  const [unit, name] = step >= 1e8 ? [1e9, "s"] : step >= 1e3 ? [1e6, "ms"]
    : [1e3, "µs"];
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  return `${(ns / unit).toFixed(digits)} ${name}`;
}

function stepTicks(count) {
  if (axis.to - axis.from < 1.5) {
    const step = roundStep(axis.to - axis.from, count);
    return ticksFrom(axis.from, axis.to, step, (value) => {
      const i = Math.min(axis.runs.length - 1, Math.floor(value + 1e-9));
      const percent = 100 * (value - i);
      return `${runLabel(axis.runs[i])}, ` +
        `${percent.toFixed(Math.max(0, -Math.floor(Math.log10(100 * step) +
          1e-9)))}%`;
    });
  }
  const every = Math.ceil((axis.to - axis.from) / count);
  return axis.runs.map((run, i) => ({value: i + 0.5, label: runLabel(run), i}))
    .filter(({value, i}) => i % every === 0 && value >= axis.from &&
      value <= axis.to);
}

function ticksFrom(from, to, step, label) {
  const ticks = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to; n++)
    ticks.push({value: n * step || 0, label: label(n * step || 0)});
  return ticks;
}

// {value, label} for about COUNT places on the axis; no two labels are equal.
function axisTicks(count) {
  if (axis.name === "steps")
    return stepTicks(count);
  const step = roundStep(axis.to - axis.from, count);
  if (axis.name === "events")
    return ticksFrom(axis.from, axis.to, Math.max(1, step), formatCount);
  const origin = clockOrigin();
  return ticksFrom(axis.from - origin, axis.to - origin, step, (ns) =>
    formatStepped(ns, step)).map(({value, label}) =>
    ({value: value + origin, label}));
}

// What the axis counts, in words.
function axisHint() {
  if (axis.name === "clock")
    return clockOrigin() ? "The time is the host's, since the step's begin"
      : "The time is the host's";
  return axis.name === "steps" ? "Each step is as wide as the others"
    : "An event is an allocation or a free";
}
