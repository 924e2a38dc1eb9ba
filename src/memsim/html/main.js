// SPDX-License-Identifier: Apache-2.0
// Puts the page together from the result that it carries.
"use strict";

const tables = {};
const page = {result: null, entries: [], shown: 0, first: 0};

// Adds what each module holds to all that it lies in, by category.
function sumUp(rows, parents) {
  for (const row of rows.values()) {
    const own = Object.entries(row.own || {}), seen = new Set();
    for (let name = row.key; name !== undefined && !seen.has(name);
      name = parents.get(name)) {
      const above = rows.get(name);
      seen.add(name);
      for (const [category, bytes] of own)
        if (above)
          above.all[category] = (above.all[category] || 0) + bytes;
    }
  }
}

// The phases at whose end it is known what modules held.
const momentsOf = (device) => (device.phases || []).length
  ? (device.module_phases || []).map((i) => device.phases[i]) : [];

// The modules of both lists: those with bytes of their own at the peak, and
// those that were called.
function moduleRows(device) {
  const phases = momentsOf(device);
  const rows = new Map(), parents = new Map();
  const row = (name) => {
    if (!rows.has(name))
      rows.set(name, {key: name, name: name || NO_MODULE, all: {}});
    return rows.get(name);
  };
  for (const m of device.modules || []) {
    parents.set(m.name, m.parent);
    Object.assign(row(m.name), {peak: m.bytes_at_peak, calls: m.calls,
      highest: m.own_peak_bytes,
      ends: m.phase_end_bytes || phases.map(() => 0)});
  }
  for (const m of device.modules_at_peak || [])
    Object.assign(row(m.name), {itself: m.bytes, own: m.categories});
  if (rows.has("")) // the rest
    rows.get("").ends = phases.map((phase, i) => phase.end_bytes -
      sum((device.modules || []).filter((m) => m.parent === undefined)
        .map((m) => m.phase_end_bytes?.[i] || 0)));
  sumUp(rows, parents);
  const all = [...rows.values()];
  for (const r of all)
    r.peak ??= r.itself;
  return all.map((r) => ({...r, whole: device.peak_allocated_bytes}));
}

// What the members of a list have together; "its own peak" is that of all at
// a time, which is not known.
const FOLDED_SUMS = ["peak", "all", "itself", "ends", "calls", "ns"];

// Fills the table of modules: lists as one row each, unless a name is searched
// for.
function showModules() {
  const {device} = page.entries[page.shown];
  const rows = addModuleTimes(moduleRows(device), page.result);
  const folded = isFolded() && !find("search").value.trim();
  page.moduleCount = rows.length;
  fillTable("modules", folded
    ? withoutLists(foldRows(rows, FOLDED_SUMS), "peak").map((row) =>
      row.inside ? {...row, highest: undefined} : row)
    : rows);
}

// Lists of modules as one, in the table and on the map, or each for itself.
function setFold(folded) {
  find("fold").checked = folded;
  showTreemap(page.entries[page.shown].device);
  search();
  saveLink();
}

const phaseName = (phase) => `step ${phase.step}, ${phase.phase}`;

// Of the phases at whose end it is known what modules held the one that ended
// with most is shown first.
function listMoments(device) {
  const phases = momentsOf(device);
  const most = phases.reduce((best, phase, i) =>
    phase.end_bytes > phases[best].end_bytes ? i : best, 0);
  find("moment").replaceChildren(...phases.map((phase, i) => {
    const option = element("option", `End of ${phaseName(phase)}`);
    option.value = i;
    return option;
  }));
  find("moment").hidden = !phases.length;
  find("moment").value = most;
}

function phaseRows(device) {
  const rows = (device.phases || []).map((p, order) => ({...p, order,
    name: `Step ${p.step}, ${p.phase}`, duration: p.end_ns - p.start_ns}));
  const most = rows.reduce((n, r) => Math.max(n, total(r.end_categories)), 0);
  return rows.map((r) => ({...r, most}));
}

// A module's name, which leads to its place on the map, if it has one.
function showModule(row) {
  const name = shorten(row.name, 400);
  if (row.inside)
    return foldButton(row, name);
  if (!isOnMap(row.key))
    return name;
  const button = element("button", name, "link");
  button.type = "button";
  button.tabIndex = -1; // of hundreds; Enter in the search does it too
  button.title = `${name}\nShow on the map`;
  button.addEventListener("click", () => findInMap(row.key));
  return button;
}

// A list's name, which shows its members.
function foldButton(row, name) {
  const button = element("button", `${row.open ? "▾" : "▸"} ${name} ` +
    `(${row.inside.length})`, "link");
  button.type = "button";
  button.tabIndex = -1; // of many; the search finds the members too
  button.ariaExpanded = String(row.open);
  button.title = `${name}\n${row.inside.length} modules, together`;
  button.addEventListener("click", () => tables.modules.turn(row));
  return button;
}

// What a module held at the moment that is chosen.
function momentColumn() {
  const bytes = (row) => row.ends?.[find("moment").value];
  return {title: "Phase's end", value: (row) => bytes(row) ?? -1,
    show: (row) => bytes(row) === undefined ? "–" : formatBytes(bytes(row))};
}

// "float32 8x1024": type and dimensions of what a block was allocated for; of
// several blocks without, the size of one.
const tensorOf = (thing) => thing.dtype
  ? `${thing.dtype} ${(thing.shape || []).join("\u00d7")}`.trim()
  : thing.count > 1 ? formatBytes(thing.bytes / thing.count) : "";

function makeTables() {
  tables.modules = new Table("modules", [
    {...textColumn("Module", "name"), show: showModule},
    bytesColumn("At the peak", "peak"),
    percentColumn("Share", "peak", "whole"),
    stripColumn("By category", "all", (row) => total(row.all)),
    bytesColumn("Itself", "itself"), bytesColumn("Own peak", "highest"),
    momentColumn(), countColumn("Calls", "calls"), moduleTimeColumn], 1);
  tables.operators = makeOperators();
  tables.holders = makeHolders();
  tables.ranks = makeRanks();
  tables.phases = new Table("phases", [
    {title: "Phase", isText: true, value: (r) => r.order, show: (r) => r.name},
    {title: "Took", value: (r) => r.duration,
      show: (r) => formatTime(r.duration)},
    bytesColumn("Peak", "peak_bytes"), bytesColumn("Held at its end",
      "end_bytes"), stripColumn("By category", "end_categories",
      (row) => row.most)], 0, false);
  tables.things = new Table("things", [bytesColumn("Size", "bytes"),
    countColumn("Blocks", "count"), textColumn("Each", "tensor"),
    textColumn("Operator", "operator"), textColumn("Module", "module"),
    textColumn("What", "what"),
    {...textColumn("Line", "where"), isOptional: true}], 0);
  tables.pools = new Table("pools", [textColumn("Pool", "name"),
    {title: "Segments", value: (r) => r.segments.length,
      show: (r) => formatCount(r.segments.length)},
    bytesColumn("Reserved", "bytes"), bytesColumn("Free", "free"),
    bytesColumn("Largest piece", "largest")], 2);
  tables.collectives = makeCollectives();
  tables.settings = new Table("settings", [
    textColumn("PYTORCH_CUDA_ALLOC_CONF", "setting"),
    textColumn("Verdict", "verdict"), bytesColumn("Used", "peak_used_bytes"),
    bytesColumn("Reserved", "peak_reserved_bytes"),
    bytesColumn("Allocated", "peak_allocated_bytes"),
    countColumn("Retries", "num_alloc_retries")], 2, false);
}

function fillTable(id, rows) {
  find(id).hidden = !rows.length;
  tables[id].setRows(rows);
}

function search() {
  const words = find("search").value.toLowerCase().split(/\s+/);
  const {modules} = tables;
  showModules();
  modules.setFilter((row) =>
    words.every((word) => row.name.toLowerCase().includes(word)));
  find("found").textContent = modules.shown.length
    ? `${plural(modules.shown.length, "row")} of ` +
      `${plural(page.moduleCount, "module")}.`
    : "No module's name has that.";
}

// Who has what only pages have.
const MISSING = {history: "blocks over time (--perfetto has them)",
  step_timeline: "this rank's timeline of a step (--kineto has it)"};

// What this page lacks of a GPU's figures; other lists are in the JSON.
function tellMissing(device, recording, rank) {
  const names = Object.keys({...device.left_out, ...page.result.left_out,
    ...rank?.left_out, ...recording?.fragmentation?.left_out});
  find("left-out").hidden = !names.length;
  find("left-out").textContent = "To stay quick this page is without " +
    `${names.map((name) => MISSING[name] ||
      `${wordsOf(name)} (--json has them)`).join(", ")}.`;
  find("modules-more").textContent = device.modules_dropped
    ? `${formatCount(device.modules_dropped)} more are left out.` : "";
  find("phases-more").textContent = device.phases_dropped
    ? `${formatCount(device.phases_dropped)} in the middle are left out.` : "";
}

function showEntry(index) {
  const {rank, device, place, alone} = page.entries[index];
  const recording = recordingOf(page.result, rank);
  page.shown = index;
  find("device").value = index;
  [...find("card-list").querySelectorAll("button")].forEach((button, i) =>
    button.setAttribute("aria-pressed", String(i === index)));
  hideTip();
  showFigures(device, result);
  showBar(device);
  showStory(device);
  showAdvice(page.result, device);
  nameRecording(device);
  showTimeline(device);
  showTreemap(device);
  const looked = recording?.fragmentation; // at one GPU of the process
  const segments = segmentsOf(device,
    alone || looked?.device === place ? looked : null);
  showSegments(segments, device);
  showStacks(device, segments);
  showReplay(recording);
  const own = (page.result.ranks || []).find((r) => r.rank === rank);
  showStepTime(page.result, own, device);
  showCollectives(page.result, rank);
  listMoments(device);
  fillTable("phases", phaseRows(device));
  fillTable("things", (device.things_at_peak || []).map((thing) =>
    ({module: "", where: "", ...thing, tensor: tensorOf(thing),
      operator: shortOperator(thing.operator), what: thing.category
        ? wordsOf(thing.category) : thing.label})));
  search();
  tellMissing(device, recording, own);
  showLinks();
  saveLink();
}

// The sections that have something to show.
function showLinks() {
  for (const link of find("links").querySelectorAll("a"))
    link.hidden = find(link.hash.slice(1)).hidden;
}

function listDevices(result) {
  return (result.ranks || []).flatMap((rank) =>
    (rank.devices || []).map((device, place, all) =>
      ({rank: rank.rank, members: membersOf(rank), device, place,
        alone: all.length === 1})));
}

// The GPU that was fullest, or out of memory, is the one to look at first.
function worstEntry(entries) {
  const badness = ({device}) => (device.ooms || []).length
    ? 2 : device.peak_used_bytes / device.capacity_bytes;
  return entries.reduce((worst, entry, i) =>
    badness(entry) > badness(entries[worst]) ? i : worst, 0);
}

// What is out of memory is shown first, then the slowest rank, which the time
// of a step is of (card_compare in report_html.c keeps their lists).
function firstEntry(result, entries) {
  const worst = worstEntry(entries), slowest = result.time?.slowest_rank;
  if ((entries[worst].device.ooms || []).length)
    return worst;
  const own = entries.filter((entry) => entry.rank === slowest);
  return own.length ? entries.indexOf(own[worstEntry(own)]) : worst;
}

// A rank by itself has the GPU of that number in its node; one that stands for
// others has it like them, each its own.
const titleOf = ({rank, members, device, alone}) => members.count > 1 && alone
  ? rankName(rank, members)
  : `${rankName(rank, members)}, GPU ${device.index}`;

function cardButton(entry, index) {
  const button = element("button", undefined, "one"), bar = element("span");
  const {device} = entry, fill = element("i");
  const out = (device.ooms || []).length;
  button.type = "button";
  fill.style.width = `${Math.min(100, 100 * device.peak_used_bytes /
    device.capacity_bytes)}%`;
  fill.className = out ? "out" : "";
  bar.className = "meter";
  bar.append(fill);
  const title = element("span", titleOf(entry));
  title.title = titleOf(entry);
  button.append(title, bar,
    element("b", formatBytes(device.peak_used_bytes)),
    element("em", out ? "out of memory" : ""));
  button.addEventListener("click", () => showEntry(index));
  return button;
}

function listCards() {
  const several = page.entries.length > 1;
  find("cards").hidden = find("device").hidden = !several;
  find("device").replaceChildren(...page.entries.map((entry, i) => {
    const option = element("option", titleOf(entry));
    option.value = i;
    return option;
  }));
  find("device").addEventListener("change", () =>
    showEntry(Number(find("device").value)));
  if (several)
    find("card-list").replaceChildren(...page.entries.map(cardButton));
  tellRanks(page.result);
}

// Canvases know neither the window's size nor the theme's colours.
function redrawOnChange() {
  let waiting = 0;
  const redraw = () => {
    drawTreemap();
    drawSegments();
    drawSteps();
    drawBlocks();
  };
  const recolor = () => {
    theme.apply();
    drawTimeline();
    redraw();
  };
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(redraw);
  });
  theme.prefersDark.addEventListener("change", recolor);
  find("theme").addEventListener("click", () => {
    theme.toggle();
    recolor();
  });
  addEventListener("scroll", hideTip, {passive: true});
}

function start() {
  const result = JSON.parse(find("result").textContent);
  Object.assign(page, {result, entries: listDevices(result)});
  const worst = page.entries.length ? worstEntry(page.entries) : -1;
  showVerdict(result, page.entries[worst]?.device,
    sum((result.ranks || []).map((rank) => membersOf(rank).count)) > 1 ||
    page.entries.length > 1);
  showNotes(result);
  find("overview").hidden = worst < 0;
  makeTables();
  startTimeline();
  startBlocks();
  startTreemap();
  startSegments();
  startSteps();
  find("moment").addEventListener("change", () => {
    tables.modules.update();
    saveLink();
  });
  find("fold").addEventListener("change", () => setFold(isFolded()));
  find("search").addEventListener("input", () => {
    search();
    saveLink();
  });
  find("search").addEventListener("keydown", (event) => {
    const first = tables.modules.shown.find((row) => isOnMap(row.key));
    if (event.key === "Enter" && first)
      findInMap(first.key);
  });
  redrawOnChange();
  startExport();
  page.first = worst < 0 ? worst : firstEntry(result, page.entries);
  listCards();
  if (worst >= 0)
    showEntry(page.first);
  else
    showStepTime(result, result.ranks?.[0]);
  showLinks();
  startLink();
}

try {
  start();
} catch (error) {
  find("failure").textContent = `This page cannot show its data: ${error}`;
  find("failure").hidden = false;
  throw error;
}
