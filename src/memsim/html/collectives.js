// SPDX-License-Identifier: Apache-2.0
// What a rank's collectives would take on the cluster asked for.
"use strict";

// A row for each kind of call; every rank of one process has its own.
function collectiveRows(result, rank) {
  const told = (result.collectives?.ranks || []).filter((r) =>
    r.rank === rank);
  return told.flatMap((r) => r.kinds || []).map((kind) => ({...kind,
    ns: 1e3 * kind.time_us, step_ns: 1e3 * (kind.step?.time_us || 0)}));
}

// What is not sure of the prices, as the summary warns of it.
function collectiveWarnings(rows) {
  const calls = new Map();
  for (const {text, calls: count} of rows.flatMap((row) => row.warnings || []))
    calls.set(text, (calls.get(text) || 0) + (count || 0));
  const all = sum(rows.map((row) => row.calls));
  return [...calls].map(([text, count]) =>
    `${formatCount(count)} of ${plural(all, "call")}: ${visible(text)}`);
}

const timeColumn = (title, key) => ({title, value: (row) => row[key],
  show: (row) => row[key] ? formatTime(row[key]) : "–"});

function makeCollectives() {
  return new Table("collectives", [textColumn("Collective", "collective"),
    countColumn("Ranks", "ranks"), countColumn("Nodes", "nodes"),
    countColumn("Calls", "calls"), bytesColumn("Data", "bytes"),
    timeColumn("Together", "ns"), timeColumn("In a step", "step_ns"),
    {title: "Error", value: (row) => row.error_median ?? -1,
      show: (row) => row.error_median === undefined ? "–"
        : `±${(100 * row.error_median).toFixed(1)}%`}], 5);
}

function showCollectives(result, rank) {
  const told = result.collectives;
  const rows = collectiveRows(result, rank);
  fillTable("collectives", rows);
  find("collectives-warnings").replaceChildren(
    ...collectiveWarnings(rows).map((text) => element("li", text)));
  find("cluster").textContent = told ? `On ${visible(told.cluster)}, ` +
    `${plural(told.gpus_per_node, "GPU")} a node` + (told.measured ? ""
    : ", by its data sheet alone") + ". Each call's time by itself: a step " +
    "overlaps them with computing, and waits for other ranks." : "";
}
