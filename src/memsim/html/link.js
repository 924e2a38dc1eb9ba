// SPDX-License-Identifier: Apache-2.0
// What is shown, in the page's address: a link to it shows the same again.
"use strict";

const link = {waiting: 0, ready: false, text: ""};

const round = (number) => String(Number(number.toPrecision(10)));

// The values that are not those at the begin.
function linkValues() {
  const values = {};
  const put = (name, value, usual) => {
    if (value !== usual && value !== undefined)
      values[name] = String(value);
  };
  put("gpu", page.shown, page.first);
  if (axis.history)
    put("axis", axis.name, "events");
  if (axis.from > axis.lowest || axis.to < axis.highest) {
    values.from = round(axis.from);
    values.to = round(axis.to);
  }
  put("layout", blocks.layout, "stacked");
  put("block", blocks.chosen, -1);
  put("blocks", find("blocks-search").value, "");
  put("module", treemap.shown?.name, "");
  put("modules", find("search").value, "");
  put("fold", isFolded(), true);
  put("moment", find("moment").value, link.moment);
  put("operations", find("steps-search").value, "");
  if (steps.data && (steps.from > 0 || steps.to < steps.whole)) {
    values.begin = round(steps.from);
    values.end = round(steps.to);
  }
  return values;
}

function saveLink() {
  if (!link.ready)
    return;
  clearTimeout(link.waiting);
  link.waiting = setTimeout(() => {
    const text = new URLSearchParams(linkValues()).toString();
    if (text === link.text)
      return;
    link.text = text;
    window.history.replaceState(null, "", "#" + text);
  }, 120);
}

const finite = (text) => text !== null && isFinite(text) ? Number(text) : NaN;

// Types TEXT into the field ID, if it is not what it has.
function fill(id, text, act) {
  if (find(id).value === (text ?? ""))
    return;
  find(id).value = text ?? "";
  act();
}

// Shows what the page's address says; what it does not know stays.
function readLink() {
  const values = new URLSearchParams(location.hash.slice(1));
  const gpu = finite(values.get("gpu") ?? page.first);
  if (page.entries[gpu] && gpu !== page.shown)
    showEntry(gpu);
  const named = ["events", "steps", "clock"].find((name) =>
    name === values.get("axis")) || "events";
  if (axis.history && named !== axis.name)
    chooseAxis(named);
  setLayout(values.get("layout"));
  if (page.entries.length && isFolded() !== (values.get("fold") !== "false"))
    setFold(!isFolded());
  fill("blocks-search", values.get("blocks"), searchBlocks);
  fill("search", values.get("modules"), search);
  fill("steps-search", values.get("operations"), searchSteps);
  if ([...find("moment").options].some((o) => o.value === values.get("moment")))
    fill("moment", values.get("moment"), () => tables.modules.update());
  const node = treemap.byName.get(values.get("module"));
  if (node && values.get("module"))
    enterModule(node);
  const [from, to] = [finite(values.get("from")), finite(values.get("to"))];
  if (timeline.chart)
    showSight(...(to > from ? [from, to] : [axis.lowest, axis.highest]));
  const [begin, end] = [finite(values.get("begin")), finite(values.get("end"))];
  if (steps.data && end > begin)
    showPart(begin, end);
  if (blocks.data)
    chooseBlock(lifeOf(finite(values.get("block"))) || null);
}

const hasLink = () => location.hash.includes("=");

function startLink() {
  link.moment = find("moment").value;
  if (hasLink())
    readLink();
  link.ready = true;
  addEventListener("hashchange", () => {
    if (hasLink())
      readLink();
  });
  const button = find("link");
  button.addEventListener("click", async () => {
    const text = new URLSearchParams(linkValues()).toString();
    await copyText(location.href.split("#")[0] + (text ? "#" + text : ""));
    button.title = button.ariaLabel = "Copied";
    setTimeout(() => {
      button.title = button.ariaLabel = "Copy a link to what is shown";
    }, 1500);
  });
}
