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

const timeColumn = (title, key) => ({title, value: (row) => row[key],
  show: (row) => row[key] ? formatTime(row[key]) : "–"});

function makeCollectives() {
  return new Table("collectives", [textColumn("Collective", "collective"),
    countColumn("Ranks", "ranks"), countColumn("Nodes", "nodes"),
    countColumn("Calls", "calls"), bytesColumn("Data", "bytes"),
    timeColumn("Together", "ns"), timeColumn("In a step", "step_ns")], 5);
}

function showCollectives(result, rank) {
  const told = result.collectives;
  fillTable("collectives", collectiveRows(result, rank));
  find("cluster").textContent = told ? `On ${visible(told.cluster)}, ` +
    `${plural(told.gpus_per_node, "GPU")} a node` + (told.measured ? ""
    : ", by its data sheet alone") + ". Each call's time by itself: a step " +
    "overlaps them with computing, and waits for other ranks." : "";
}
