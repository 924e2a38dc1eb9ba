// SPDX-License-Identifier: Apache-2.0
// The verdict, the figures at the peak, the OOM story and notes.
"use strict";

const VERDICTS = {
  "fits": ["Fits", "good"], "oom": ["Out of memory", "bad"],
  "over-limit": ["Over the limit", "warn"], "failed": ["Failed", "bad"],
  "unknown": ["Unknown", "warn"], "none": ["No GPU was used", "warn"],
  "grows": ["Memory grows", "warn"],
  "host-memory": ["Too little host memory", "bad"],
  "input": ["The worst case does not fit", "bad"],
};

const short = (device) => Math.max(0, ...(device.ooms || [])
  .filter((oom) => !oom.caught).map((oom) => oom.missing_bytes || 0));

// Whether --check-collectives makes the verdict.
const collectivesFail = (result) => result.verdict === "over-limit" &&
  (result.collective_faults || []).length > 0 && !result.fail_above_percent;

// The verdict in a sentence; WORST is the device that decided it, if any.
function sentence(result, worst, several) {
  if (!worst && result.time)
    return `A step takes ${formatTime(result.time.step_ns)}; ` +
      (result.why || "its memory is not known");
  if (!worst)
    return result.verdict === "none" ? "There was nothing to measure"
      : `The command ended with status ${result.command_status}`;
  const used = formatBytes(worst.peak_used_bytes);
  if (result.verdict === "oom")
    return "It does not fit" + (short(worst)
      ? `: at least ${formatBytes(short(worst))} short` : "");
  if (result.verdict === "unknown")
    return `It needs at least ${formatBytes(result.needs_bytes || 0)}; ` +
      (result.why || "the recording is not of the whole job");
  if (result.verdict === "over-limit" && collectivesFail(result))
    return result.endless ? "A rank waits for what never comes"
      : "The ranks do not call the same collectives";
  if (result.verdict === "over-limit")
    return `It fits, but takes ${formatPercent(worst.peak_used_bytes,
      worst.capacity_bytes)} of the GPU, more than ` +
      `${result.fail_above_percent}%`;
  const failed = (result.failed_processes || []).find((p) => !p.run_again);
  if (result.verdict === "failed" && !result.command_status && failed)
    return `${failed.program} ` + (failed.exit_status === undefined
      ? "was killed, or crashed" : `ended with status ${failed.exit_status}`) +
      "; the command hides it, with status 0";
  if (result.verdict === "failed")
    return `The command ended with status ${result.command_status}, not for ` +
      `lack of memory; it had used ${used}`;
  if (result.verdict === "grows")
    return growthSentence(result);
  if (result.verdict === "input" && !shortOfInput(result))
    return "What was run fits, but not 95% of the seeds of --routing";
  if (result.verdict === "input")
    return `What was run fits; ${inputSentence(shortOfInput(result))}`;
  if (result.verdict === "host-memory")
    return `It fits on the GPU, but a node needs ` +
      `${formatBytes(result.host.peak_bytes)} of the host's memory, more ` +
      `than ${formatBytes(result.host.limit_bytes)}`;
  return `It fits, with ${formatBytes(worst.headroom_bytes)} to spare` +
    (several ? " on the fullest GPU" : "");
}

// How long memory lasts that grows: "790", "784 to 795".
const lasts = ({lasts_least_steps: least, lasts_most_steps: most}) =>
  least === most ? `${least}` : `${least} to ${most}`;

// The device whose memory runs out first; undefined: none's does.
const firstOut = (result) => (result.ranks || [])
  .flatMap((rank) => rank.devices || [])
  .filter((device) => device.growth && device.growth.lasts_least_steps)
  .sort((a, b) => a.growth.lasts_least_steps - b.growth.lasts_least_steps)[0];

function growthSentence(result) {
  const {growth} = firstOut(result) || {};
  if (!growth)
    return "Memory grows from step to step";
  return `Each step keeps ${formatBytes(growth.step_bytes)} more; memory ` +
    `lasts ${lasts(growth)} steps` +
    (result.job_steps ? ` of ${result.job_steps}` : "") +
    `. ${growth.cause}`;
}

// What the peak depends on, by the name of the dimension.
const INPUTS = {
  "token": "token of the longest sample",
  "value": "value of the largest sample's input",
  "sample": "sample of the largest step",
  "batch-token": "token of the largest batch, padding included",
  "batch-value": "value of the largest batch, padding included",
};

// The device that the largest input does not fit on.
const shortOfInput = (result) => (result.ranks || [])
  .flatMap((rank) => rank.devices || [])
  .find((device) => device.input_law && device.input_law.fits === false);

// "" where no law was found.
function inputSentence(device) {
  const law = device && device.input_law;
  if (!law)
    return "";
  const n = law.input_max || law.longest;
  const each = law.token_bytes + 2 * law.square_bytes * n;
  const peak = law.input_max ? law.peak_allocated_bytes
    : law.constant_bytes + n * (law.token_bytes + n * law.square_bytes);
  return "the peak of a step is " + (law.degree
    ? `${formatBytes(each)} for each ${INPUTS[law.dimension]}` +
      `${law.degree > 1 ? " there, with its square" : ""}, ` : "") +
    `${formatBytes(peak)} at ${formatCount(n)}` +
    (law.fits === false ? ", which does not fit" : "");
}

// Of a run that fits, also what did not go well in it.
function verdictWord(result) {
  const refused = result.failed_allocations || 0;
  const failed = (result.failed_processes || []).length;
  const many = (n, one, more) => `Fits, but ${n} ${n > 1 ? more : one} failed`;
  if (result.verdict === "fits" && refused)
    return [many(refused, "allocation", "allocations"), "warn"];
  if (result.verdict === "fits" && failed)
    return [many(failed, "process", "processes"), "warn"];
  if (result.no_steps)
    return ["Unknown: no step was recorded", "warn"];
  if (collectivesFail(result))
    return [result.endless ? "Never ends" : "Collectives do not match", "bad"];
  return VERDICTS[result.verdict] || [String(result.verdict), "warn"];
}

// The whole command line, as a shell reads it; of an older run, what it ran.
const commandOf = (result) =>
  (result.invocation || result.command || []).map(shellWord).join(" ");

function showVerdict(result, worst, several) {
  const [word, mood] = verdictWord(result);
  const gpu = result.gpu || {};
  document.body.dataset.mood = mood;
  document.title = `${word}: ${gpu.device_name || gpu.name || ""} - memsim`;
  find("verdict").textContent = word;
  find("sentence").textContent = sentence(result, worst, several);
  find("card").textContent = visible(gpu.device_name || gpu.name || "") +
    (gpu.memory_bytes ? `, ${formatBytes(gpu.memory_bytes)}` : "");
  find("command").textContent = shorten(commandOf(result), 2000);
  const made = ["Made by memsim"];
  if (result.torch)
    made.push("PyTorch " + visible(result.torch));
  if (result.seconds)
    made.push(`the run took ${result.seconds.toFixed(1)} s`);
  find("made").textContent = made.join(" · ");
}

// What fills the GPU at the peak, as far as it is known.
function partsOf(device) {
  const own = device.categories_at_peak;
  const context = (device.context_bytes || 0) + (device.libraries_bytes || 0) ||
    Math.max(0, device.peak_used_bytes - device.peak_reserved_bytes);
  const parts = own
    ? sortCategories(Object.keys(own)).map((name) => [name, own[name]])
    : [["in_use", device.peak_allocated_bytes, "allocated"]];
  const known = sum(parts.map((part) => part[1]));
  parts.push(["cached", Math.max(0, device.peak_used_bytes - context - known),
    "reserved, not in use"]);
  parts.push(["context", context, "CUDA context, libraries"]);
  return parts.filter((part) => part[1] > 0)
    .map(([category, bytes, label]) => ({category, bytes,
      label: label || wordsOf(category)}));
}

// RANGE: between what it may be on a GPU; undefined: as it is.
function figure(label, bytes, device, range) {
  const box = element("div");
  box.append(element("dt", label), element("dd", formatBytes(bytes)),
    element("dd", `${formatPercent(bytes, device.capacity_bytes)} of the GPU`,
      "hint"));
  if (range && range.most_bytes - range.least_bytes > range.most_bytes / 100)
    box.append(element("dd", `between ${formatBytes(range.least_bytes)} and ` +
      formatBytes(range.most_bytes), "hint"));
  return box;
}

// Each empties PyTorch's cache and waits for the GPU.
function retriesText(device) {
  return device.retries
    ? ` ${plural(device.retries, "request")} of PyTorch's succeeded only ` +
      "after it had emptied its cache, which takes time."
    : "";
}

// Of a node; it has nothing to do with a GPU.
function hostFigure({host}) {
  if (!host)
    return [];
  const box = element("div");
  const limit = host.limit_bytes
    ? `of ${formatBytes(host.limit_bytes)}, ` : "";
  box.append(element("dt", "Host memory"),
    element("dd", formatBytes(host.peak_bytes)),
    element("dd", limit + plural(host.processes.length, "process"), "hint"));
  const growth = host.growth;
  if (growth)
    box.append(element("dd", "grows by " +
      `${formatBytes(growth.step_least_bytes)} to ` +
      `${formatBytes(growth.step_most_bytes)} with each step`, "hint"));
  if (host.growth_unknown)
    box.append(element("dd", host.growth_unknown, "hint"));
  return [box];
}

const EPISODES = {
  saving: "when a checkpoint was saved",
  loading: "when a checkpoint was loaded",
};

function showFigures(device, result) {
  find("figures").replaceChildren(
    figure("Peak used", device.peak_used_bytes, device),
    figure("Peak reserved", device.peak_reserved_bytes, device,
      device.peak_reserved_range),
    figure("Peak allocated", device.peak_allocated_bytes, device,
      device.peak_allocated_range),
    figure("Headroom", device.headroom_bytes, device),
    ...hostFigure(result));
  const peak = device.peak;
  const input = inputSentence(device);
  const during = peak &&
    (EPISODES[peak.episode] || peak.episode || peak.phase);
  find("when").textContent = (peak ? "Allocated memory was highest in step " +
    `${peak.step}, ${during}.` : "") +
    (input ? ` By the inputs, ${input}.` : "") + retriesText(device);
}

function tipOn(piece, lines) {
  piece.addEventListener("pointermove", (event) =>
    showTip(lines, event.clientX, event.clientY));
  piece.addEventListener("pointerleave", hideTip);
}

function barPiece(part, whole, capacity) {
  const piece = element("i");
  piece.style.width = `${100 * part.bytes / whole}%`;
  piece.style.background = colorOf(part.category);
  tipOn(piece, [[colorOf(part.category), part.label, formatBytes(part.bytes)],
    `${formatPercent(part.bytes, capacity)} of the GPU`]);
  return piece;
}

function legendItem(part, capacity) {
  const item = element("li");
  item.append(swatch(colorOf(part.category)), element("span", part.label),
    element("b", formatBytes(part.bytes)),
    element("em", formatPercent(part.bytes, capacity)));
  return item;
}

function showBar(device) {
  const parts = partsOf(device), capacity = device.capacity_bytes;
  const whole = Math.max(capacity, sum(parts.map((part) => part.bytes)));
  find("bar").setAttribute("aria-label", parts.map((part) =>
    `${part.label} ${formatBytes(part.bytes)}`).join(", "));
  find("bar").replaceChildren(
    ...parts.map((part) => barPiece(part, whole, capacity)));
  find("legend").replaceChildren(
    ...parts.map((part) => legendItem(part, capacity)));
}

function tellOom(oom) {
  const by = oom.by === "torch" ? "PyTorch" : "cudaMalloc or a library";
  const words = [`${by} asked for ${formatBytes(oom.requested_bytes)}`];
  if (oom.module)
    words.push(` in ${shorten(oom.module, 200)}`);
  if (oom.phase)
    words.push(` (step ${oom.step}, ${oom.phase})`);
  words.push(`; ${formatBytes(oom.free_bytes)} of the GPU was free`);
  if (oom.reserved_unallocated_bytes)
    words.push(`, and ${formatBytes(oom.reserved_unallocated_bytes)} was ` +
      "reserved by PyTorch in pieces that did not suit");
  words.push(". ", oom.caught ? "The program went on. "
    : "The program ended there. ");
  if (oom.missing_bytes)
    words.push(`${formatBytes(oom.missing_bytes)} more would have met this ` +
      "request" + (oom.caught ? "." : ", which is the least that it needs: " +
      "it did not get to ask for more."));
  else
    words.push("A limit that the program set itself was in the way, not the " +
      "GPU's memory.");
  return words.join("");
}

// The GPU as it was when it refused, and the request that begins where the
// free memory does, and ends beyond the GPU.
function drawOom(oom, device) {
  const capacity = device.capacity_bytes;
  const used = Math.max(0, capacity - oom.free_bytes);
  const whole = Math.max(capacity, used + oom.requested_bytes);
  const bar = element("div", undefined, "refused");
  const piece = (name, from, bytes, label) => {
    const e = element("i", undefined, name);
    e.style.left = `${100 * from / whole}%`;
    e.style.width = `${100 * bytes / whole}%`;
    if (bytes / whole > 0.14 && name !== "card")
      e.append(element("span", (bytes / whole > 0.3 ? `${label} ` : "") +
        formatBytes(bytes)));
    tipOn(e, [["", label, formatBytes(bytes)]]);
    bar.append(e);
  };
  const allocated = Math.min(oom.allocated_bytes || 0, used);
  const idle = Math.min(oom.reserved_unallocated_bytes || 0, used - allocated);
  piece("card", 0, capacity, "the GPU");
  piece("allocated", 0, allocated, "allocated");
  piece("idle", allocated, idle, "reserved, not in use");
  piece("context", allocated + idle, used - allocated - idle,
    "CUDA context and all else");
  piece("request", used, oom.requested_bytes, "asked for");
  if (used > whole * 0.35)
    bar.append(element("b", `of ${formatBytes(capacity)}`));
  bar.setAttribute("aria-hidden", "true");
  return bar;
}

function showStory(device) {
  const ooms = device.ooms || [];
  find("story").hidden = !ooms.length;
  const survived = ooms.every((oom) => oom.caught);
  find("story").classList.toggle("survived", survived);
  find("story-title").textContent = survived
    ? "Out of memory, and survived" : "Out of memory";
  find("ooms").replaceChildren(...ooms.slice(0, 100).map((oom) => {
    const item = element("li");
    item.append(element("p", tellOom(oom)));
    if (oom.missing_bytes)
      item.append(drawOom(oom, device));
    return item;
  }));
  find("story-more").textContent = ooms.length > 100
    ? `${formatCount(ooms.length - 100)} more are not shown.` : "";
}

const GUESSES_SHOWN = 10;

// Where the program got values that memsim does not compute.
function guessNotes(result) {
  const {guesses = [], guesses_dropped: dropped = 0} = result;
  const shown = guesses.slice(0, GUESSES_SHOWN).map((guess) => "guess: " +
    (guess.where ? `${guess.where} (${guess.operator})` : guess.operator) +
    `: ${guess.what}, ${plural(guess.times, "time")}`);
  const more = guesses.length - shown.length + dropped;
  return more > 0 ? [...shown, `guess: ${plural(more, "more place")}, see ` +
    "the JSON"] : shown;
}

function showNotes(result) {
  const notes = [...result.notes || [], ...guessNotes(result)];
  find("notes").hidden = !notes.length;
  find("note-list").replaceChildren(
    ...notes.map((note) => element("li", visible(note))));
}
