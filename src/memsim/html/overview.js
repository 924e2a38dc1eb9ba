// SPDX-License-Identifier: Apache-2.0
// The verdict, the figures at the peak, the OOM story, advice and notes.
"use strict";

const VERDICTS = {
  "fits": "Fits", "oom": "Out of memory", "over-limit": "Above the limit",
  "failed": "The command failed",
};

function showVerdict(result) {
  const verdict = VERDICTS[result.verdict] || String(result.verdict);
  const gpu = result.gpu || {};
  const name = gpu.device_name || gpu.name || "";
  document.body.classList.toggle("fails", result.verdict !== "fits");
  document.title = `${verdict}: ${name} - memsim`;
  find("verdict").textContent = verdict;
  find("card").textContent =
    `${name}, ${formatBytes(gpu.memory_bytes || 0)} each`;
  find("command").textContent = (result.command || []).join(" ");
  const made = ["Made by memsim"];
  if (result.torch)
    made.push("PyTorch " + result.torch);
  if (result.seconds)
    made.push(`the run took ${result.seconds.toFixed(1)} s`);
  find("made").textContent = made.join(" · ");
}

// The worst first, wherever it was: the page opens on what matters.
function headline(entry) {
  const d = entry.device;
  return `rank ${entry.rank}, card ${d.index}: ` +
    `${formatBytes(d.peak_used_bytes)} used` +
    ((d.ooms || []).length ? ", out of memory" : "");
}

// What fills the card at the peak of `used`, as far as it is known.
function partsOf(device) {
  const parts = [];
  const own = device.categories_at_peak;
  const context = (device.context_bytes || 0) + (device.libraries_bytes || 0);
  if (own)
    for (const name of sortCategories(Object.keys(own)))
      parts.push([name, own[name]]);
  else
    parts.push(["activation", device.peak_allocated_bytes, "allocated"]);
  const known = sum(parts.map((part) => part[1]));
  parts.push(["cached", Math.max(0, device.peak_used_bytes - context - known),
    "reserved, not in use, and other"]);
  parts.push(["context", context, "CUDA context and libraries"]);
  return parts.filter((part) => part[1] > 0)
    .map(([category, bytes, label]) => ({category, bytes,
      label: label || category}));
}

function showFigures(device) {
  const of = (bytes) => formatPercent(bytes, device.capacity_bytes);
  const rows = [
    ["peak used", device.peak_used_bytes], ["headroom", device.headroom_bytes],
    ["peak reserved", device.peak_reserved_bytes],
    ["peak allocated", device.peak_allocated_bytes],
    ["of the card", device.capacity_bytes],
  ];
  find("figures").replaceChildren(...rows.map(([label, bytes]) => {
    const box = element("div");
    box.append(element("b", formatBytes(bytes || 0)),
      element("span", label === "of the card" ? "the card's memory"
        : `${label}, ${of(bytes || 0)}`));
    return box;
  }));
}

function showBar(device) {
  const parts = partsOf(device);
  const whole = Math.max(device.capacity_bytes,
    sum(parts.map((part) => part.bytes)));
  find("bar").setAttribute("aria-label", parts.map((part) =>
    `${part.label} ${formatBytes(part.bytes)}`).join(", "));
  find("bar").replaceChildren(...parts.map((part) => {
    const piece = element("i");
    const text = `${part.label}: ${formatBytes(part.bytes)} ` +
      `(${formatPercent(part.bytes, device.capacity_bytes)} of the card)`;
    piece.style.width = `${100 * part.bytes / whole}%`;
    piece.style.background = colorOf(part.category);
    piece.addEventListener("mousemove", (event) => showTip(text, event));
    piece.addEventListener("mouseleave", hideTip);
    return piece;
  }));
  find("legend").replaceChildren(...parts.map((part) => {
    const item = element("li");
    const swatch = element("span", "", "swatch");
    swatch.style.background = colorOf(part.category);
    item.append(swatch, `${part.label} ${formatBytes(part.bytes)}`);
    return item;
  }));
}

function tellOom(oom) {
  const parts = [`${oom.by || "torch"} asked for ` +
    formatBytes(oom.requested_bytes)];
  if (oom.module)
    parts.push(` in ${oom.module}`);
  if (oom.phase)
    parts.push(` (${oom.phase})`);
  if (oom.free_bytes !== undefined)
    parts.push(`; the card had ${formatBytes(oom.free_bytes)} free`);
  if (oom.allocated_bytes !== undefined)
    parts.push(`, ${formatBytes(oom.allocated_bytes)} was allocated`);
  if (oom.reserved_unallocated_bytes)
    parts.push(`, ${formatBytes(oom.reserved_unallocated_bytes)} reserved ` +
      "but not in use, in pieces too small or of another pool");
  parts.push(". ");
  if (oom.missing_bytes)
    parts.push(`${formatBytes(oom.missing_bytes)} more would have met this ` +
      "request. ");
  parts.push(oom.caught ? "The program survived it."
    : "The program did not survive it.");
  return parts.join("");
}

function showStory(device) {
  const ooms = device.ooms || [];
  find("story").hidden = !ooms.length;
  find("ooms").replaceChildren(
    ...ooms.slice(0, 100).map((oom) => element("li", tellOom(oom))));
}

function showAdvice(result) {
  const advice = result.advice || [];
  find("advice").hidden = !advice.length;
  find("advices").replaceChildren(...advice.map((a) => {
    const item = element("li", a.text);
    item.append(element("br"), element("code", a.command));
    return item;
  }));
}

function showNotes(result) {
  const notes = result.notes || [];
  find("notes").hidden = !notes.length;
  find("note-list").replaceChildren(
    ...notes.map((note) => element("li", note)));
}
