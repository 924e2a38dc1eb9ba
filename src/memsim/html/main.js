// SPDX-License-Identifier: Apache-2.0
// Puts the page together from the result that it carries.
"use strict";

const tables = {};

// The modules of both lists: those with bytes at the peak, and those that had
// their own peak at another time.
function moduleRows(device) {
  const rows = new Map();
  const row = (name) => {
    if (!rows.has(name))
      rows.set(name, {name: name || NO_MODULE});
    return rows.get(name);
  };
  for (const m of device.modules || [])
    Object.assign(row(m.name), {peak: m.bytes_at_peak, calls: m.calls,
      own: m.own_peak_bytes});
  for (const m of device.modules_at_peak || [])
    Object.assign(row(m.name), {peak: m.bytes, categories: m.categories});
  const all = [...rows.values()];
  const most = all.reduce((n, r) => Math.max(n, total(r.categories)), 0);
  all.forEach((r) => {
    r.most = most;
  });
  return all;
}

function phaseRows(device) {
  const rows = (device.phases || []).map((p) => ({...p,
    name: `step ${p.step}, ${p.phase}`, duration: p.end_ns - p.start_ns}));
  const most = rows.reduce((n, r) => Math.max(n, total(r.end_categories)), 0);
  rows.forEach((r, i) => {
    r.most = most;
    r.order = rows.length - i;
  });
  return rows;
}

function makeTables() {
  tables.modules = new Table("modules", [textColumn("module", "name"),
    bytesColumn("at the peak", "peak"), stripColumn("by category",
      "categories"), bytesColumn("its own peak", "own"),
    countColumn("calls", "calls")], 1);
  tables.phases = new Table("phases", [
    {title: "phase", value: (r) => r.order, show: (r) => r.name},
    {title: "took", value: (r) => r.duration,
      show: (r) => formatTime(r.duration)},
    bytesColumn("peak", "peak_bytes"), bytesColumn("held at its end",
      "end_bytes"), stripColumn("by category", "end_categories")], 0);
  tables.things = new Table("things", [textColumn("thing", "label"),
    bytesColumn("together", "bytes"), countColumn("blocks", "count")], 1);
}

function fillTable(id, rows) {
  find(id).hidden = !rows.length;
  tables[id].setRows(rows);
}

function search() {
  const wanted = find("search").value.toLowerCase();
  tables.modules.setFilter((row) => row.name.toLowerCase().includes(wanted));
  find("found").textContent = `${tables.modules.shown.length} of ` +
    `${tables.modules.rows.length}`;
}

function showDevice(device) {
  showFigures(device);
  showBar(device);
  showStory(device);
  showTimeline(device);
  showTreemap(device);
  showSegments(device);
  fillTable("modules", moduleRows(device));
  fillTable("phases", phaseRows(device));
  fillTable("things", device.things_at_peak || []);
  search();
}

function listDevices(result) {
  return (result.ranks || []).flatMap((rank) =>
    (rank.devices || []).map((device) => ({rank: rank.rank, device})));
}

// The card that was fullest, or out of memory, is the one to look at first.
function worstDevice(entries) {
  const badness = ({device}) => (device.ooms || []).length
    ? 2 : device.peak_used_bytes / device.capacity_bytes;
  return entries.reduce((worst, entry, i) =>
    badness(entry) > badness(entries[worst]) ? i : worst, 0);
}

function chooseFrom(entries) {
  const select = find("device");
  select.replaceChildren(...entries.map((entry, i) => {
    const option = element("option", headline(entry));
    option.value = i;
    return option;
  }));
  select.value = worstDevice(entries);
  select.addEventListener("change", () =>
    showDevice(entries[select.value].device));
  find("devices").hidden = entries.length < 2;
  showDevice(entries[select.value].device);
}

// Canvases know neither the window's size nor the scheme's colours.
function redrawOnChange(entries) {
  let waiting = 0;
  const redraw = () => {
    drawTreemap();
    drawSegments();
  };
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(redraw);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    showTimeline(entries[find("device").value].device);
    redraw();
  });
  addEventListener("scroll", hideTip, {passive: true});
}

function start() {
  const result = JSON.parse(find("result").textContent);
  const entries = listDevices(result);
  showVerdict(result);
  showAdvice(result);
  showNotes(result);
  find("overview").hidden = !entries.length;
  if (!entries.length)
    return;
  makeTables();
  startTreemap();
  startSegments();
  find("search").addEventListener("input", search);
  chooseFrom(entries);
  redrawOnChange(entries);
}

try {
  start();
} catch (error) {
  find("failure").textContent = `This page cannot show its data: ${error}`;
  find("failure").hidden = false;
  throw error;
}
