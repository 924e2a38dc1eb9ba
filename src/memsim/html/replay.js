// SPDX-License-Identifier: Apache-2.0
// What `memsim replay` adds: the settings that were tried, and the segments
// as 32 cells each.
"use strict";

const CELLS = {"#": "allocated", "+": "mixed", ".": "free"};

// Neighbouring cells of one kind as one block.
function blocksOfCells(segment) {
  const cells = [...(segment.map || "")], blocks = [];
  const bytes = segment.bytes / (cells.length || 1);
  cells.forEach((cell, i) => {
    const last = blocks[blocks.length - 1], state = CELLS[cell] || "mixed";
    if (last && last.state === state)
      last.bytes += bytes;
    else
      blocks.push({offset: i * bytes, bytes, state});
  });
  return blocks;
}

function recordingOf(result, rank) {
  return (result.replay || []).find((r) => r.rank === rank);
}

// A run has its segments' blocks; a replay tells them more roughly.
function segmentsOf(device, fragmentation) {
  if (device.segments_at_peak)
    return device.segments_at_peak;
  return (fragmentation?.segments || []).map((segment) =>
    ({...segment, blocks: blocksOfCells(segment)}));
}

const OTHER = "other", IN_USE = "in_use";

// A recording has no categories: all of its memory is in use.
function nameRecording(device) {
  const {history} = device;
  if (device.categories_at_peak || !history)
    return;
  history.names = history.names.map((name) => name === OTHER ? IN_USE : name);
  for (const {categories} of [...history.points, ...device.timeline || []]) {
    categories[IN_USE] = categories[OTHER] || 0;
    delete categories[OTHER];
  }
  for (const segment of device.segments_at_peak || [])
    for (const block of segment.blocks)
      delete block.category;
}

const OUTCOMES = {"fits": "fits", "unknown": "unknown"};

function settingRows(recording) {
  return (recording?.configurations || []).map((tried) => {
    const fullest = (tried.devices || []).reduce((a, b) =>
      !a || b.peak_used_bytes > a.peak_used_bytes ? b : a, null) || {};
    return {...fullest, verdict: OUTCOMES[tried.verdict] ||
      "out of memory", setting: tried.alloc_conf || "(defaults)"};
  });
}

function showReplay(recording) {
  fillTable("settings", settingRows(recording));
  const told = [];
  if (recording?.advice)
    told.push(`Best: PYTORCH_CUDA_ALLOC_CONF=${visible(recording.advice)}.`);
  if (recording?.smallest_memory_bytes)
    told.push("The least memory that is enough is " +
      (recording.smallest_is_least ? "at least " : "") +
      `${formatBytes(recording.smallest_memory_bytes)}.`);
  find("settings-best").textContent = told.join(" ");
}
