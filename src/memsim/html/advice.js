// SPDX-License-Identifier: Apache-2.0
// What would take less memory: how much it saves, what it costs, how it is done.
"use strict";

const capital = (text) => text.replace(/^./u, (c) => c.toUpperCase());

// What an advice saves, beside the MOST that any does, and of which peak.
function drawSaving(advice, most) {
  const after = advice[`peak_${advice.of}_bytes`] || 0;
  const before = after + advice.saves_bytes;
  const row = element("div", undefined, "saving"), bar = element("span");
  const saved = element("i");
  bar.className = "meter";
  saved.style.width = `${100 * advice.saves_bytes / most}%`;
  bar.append(saved);
  row.append(bar, element("span", `${visible(advice.of)} ` +
    `${formatBytes(before)} → ${formatBytes(after)} ` +
    `(−${formatPercent(advice.saves_bytes, before)})`));
  return row;
}

// What an advice costs, and how it is done.
function adviceFacts(advice) {
  const {costs_ns: costs, time_unknown: unknown, change} = advice;
  const step = page.result.time?.step_ns;
  return [
    costs && `Costs about ${formatTime(costs)} a step` +
      (step ? ` (${formatPercent(costs, step)})` : "") +
      ": its forward runs twice.",
    unknown && `What it costs in time is not known: ${visible(unknown)}.`,
    change?.text && `In the script: ${visible(change.text)}`,
  ].filter(Boolean).map((text) => element("p", text, "fact"));
}

const BASIS_LEAST = 20;

// Words that all the bases begin with: shown once.
function commonBasis(advice) {
  const bases = advice.map((a) => a.basis || "");
  let length = 0;
  while (bases.length > 1 && bases.every((b) => length < b.length &&
      b[length] === bases[0][length]))
    length++;
  while (length && bases.some((b) => /^\w/u.test(b.slice(length))))
    length--;
  const common = (bases[0] || "").slice(0, length).split(";")[0];
  return common.length < BASIS_LEAST ? "" : common;
}

function adviceItem(advice, fitted, most, common) {
  const item = element("li"), head = element("p",
    capital(visible(advice.text)));
  item.append(head);
  if (advice.fits && !fitted)
    head.append(element("strong", "fits", "badge"));
  if (advice.saves_bytes && advice.of)
    item.append(drawSaving(advice, most));
  item.append(...adviceFacts(advice));
  if (advice.command) {
    const line = element("div", undefined, "advice-line");
    line.append(element("code", visible(advice.command)),
      copyButton("the command", () => advice.command));
    item.append(line);
  }
  const basis = (advice.basis || "").slice(common.length)
    .replace(/^[\s,;]+/u, "");
  if (basis)
    item.append(element("small", capital(visible(basis)) + "."));
  return item;
}

// What a command's DIR stands for. Savings on a GPU that it does not fit on
// are those of a run without a limit.
function tellDirectory(advice, fitted) {
  const limitless = !fitted && advice.some((a) => a.saves_bytes);
  return advice.some((a) => (a.command || "").includes(" DIR "))
    ? " DIR is what `memsim run -o DIR" +
      `${limitless ? " --memory 1TiB" : ""} ...' keeps.` : "";
}

// Only what was asked for: a device without advice has no list.
function showAdvice(result, device) {
  const {advice = []} = device;
  const fitted = !["oom", "over-limit"].includes(result.verdict);
  find("advice").hidden = !device.advice;
  const common = commonBasis(advice);
  const basis = common.replace(/[\s,;]+$/u, "");
  const most = Math.max(...advice.map((a) => a.saves_bytes || 0));
  find("advice-hint").textContent = advice.length
    ? "Each by itself; bars are what is saved." +
      (basis ? ` Basis: ${visible(basis)}.` : "") +
      tellDirectory(advice, fitted)
    : "Nothing that was tried saves more than 1%.";
  find("advice-list").replaceChildren(...advice.map((a) =>
    adviceItem(a, fitted, most, common)));
}
