// SPDX-License-Identifier: Apache-2.0
// The ranks of a job: those that ran, what each stands for, and their steps
// side by side.
"use strict";

// "0-127:8,130": how many, and how they are written.
function membersOf(rank) {
  const parts = String(rank.members ?? rank.rank).split(",");
  const counts = parts.map((part) => {
    const [, first, last, stride] = /^(\d+)(?:-(\d+))?(?::(\d+))?$/.exec(part) ||
      [null, 0, 0, 1];
    return 1 + Math.floor(((last ?? first) - first) / (stride ?? 1));
  });
  return {count: sum(counts), text: parts.join(", ").replaceAll("-", "–")};
}

const rankName = (rank, members) => members.count > 1
  ? `Ranks ${members.text}, as rank ${rank}` : `Rank ${rank}`;

// The step that stands for those of RANK.
function stepOf(result, rank) {
  const index = rank?.step_timeline?.step_index ?? rank?.step_index ??
    result.time?.step_index;
  return rank?.steps?.find((step) => step.index === index);
}

// The rank whose step is the job's, if the report names one.
const slowestRank = (result) => (result.ranks || []).find((rank) =>
  rank.rank === result.time?.slowest_rank);

// A row for each rank with a step, its parts as the terminal has them.
function rankRows(result) {
  return (result.ranks || []).map((rank) => [rank, stepOf(result, rank)])
    .filter(([, step]) => step).map(([rank, step]) => {
      const members = membersOf(rank), peers = step.peers_ns || 0;
      return {rank: rank.rank, name: members.text, ns: step.duration_ns,
        compute: step.compute_ns, beside: step.overlapped_comm_ns,
        exposed: step.exposed_comm_ns - peers, peers,
        bubble: step.bubble_ns || 0,
        other: step.exposed_copy_ns + step.host_bound_ns + step.other_ns};
    });
}

// Its ranks, which lead to the first GPU that they used.
function showRank(row) {
  const index = page.entries.findIndex((entry) => entry.rank === row.rank);
  const slowest = row.rank === page.result.time?.slowest_rank;
  const text = row.name + (slowest ? " (slowest)" : "");
  if (index < 0)
    return text;
  const button = element("button", text, "link");
  button.type = "button";
  button.title = `Show rank ${row.rank}`;
  button.addEventListener("click", () => showEntry(index));
  return button;
}

const rankTime = (title, key) => ({title, value: (row) => row[key],
  show: (row) => row[key] ? formatTime(row[key]) : "–"});

function makeRanks() {
  return new Table("ranks", [
    {...textColumn("Ranks", "name"), show: showRank},
    rankTime("Step", "ns"), rankTime("Compute", "compute"),
    rankTime("Beside", "beside"), rankTime("Exposed", "exposed"),
    rankTime("Waiting", "peers"), rankTime("Bubble", "bubble"),
    rankTime("Other", "other")], 0, false);
}

// How many ranks the job has, of which ran what is here; and their steps.
function tellRanks(result) {
  const ranks = result.ranks || [];
  const all = sum(ranks.map((rank) => membersOf(rank).count));
  find("ranks-hint").textContent = all > ranks.length
    ? `${plural(all, "rank")}, of which ${formatCount(ranks.length)} are ` +
      "shown: the others came to the same figures, or were taken to be like " +
      "one of them. Each has a GPU of its own."
    : "";
  const rows = rankRows(result);
  fillTable("ranks", rows.length > 1 ? rows : []);
}
