// SPDX-License-Identifier: Apache-2.0
// Modules as nested rectangles: d3-hierarchy lays them out, a canvas shows
// them, so that tens of thousands stay quick.
"use strict";

const HEAD = 18; // of a module's rectangle, where there is room for its name
const NESTED = 64; // dots in a name that are followed where nothing else is
const treemap = {root: null, shown: null, byName: new Map(), nodes: [],
  chosen: -1};

function newNode(name, label, above) {
  const node = {name, label, above, inside: [], parts: []};
  if (above)
    above.inside.push(node);
  return node;
}

// The tree of modules by their parents, or by the dots of names that have none
// told; the leaves are what each holds itself, by category. NODES gets each
// module's node. NAMED makes one name of those of a list, or leaves them.
function moduleTree(device, nodes, named) {
  const root = newNode("", "all", null);
  const parents = new Map((device.modules || []).map((m) =>
    [named(m.name), m.parent === undefined ? m.parent : named(m.parent)]));
  const aboveOf = (name) => {
    const dot = name.lastIndexOf(".");
    if (parents.has(name))
      return parents.get(name);
    return dot > 0 && name.split(".", NESTED).length < NESTED
      ? name.slice(0, dot) : undefined;
  };
  const nodeOf = (name) => {
    if (nodes.has(name))
      return nodes.get(name);
    const above = aboveOf(name);
    nodes.set(name, null); // who is above itself, is below the root
    const parent = (above && above !== name && nodeOf(above)) || root;
    const label = parent !== root && name.startsWith(parent.name + ".")
      ? name.slice(parent.name.length + 1) : name;
    nodes.set(name, newNode(name, label || NO_MODULE, parent));
    return nodes.get(name);
  };
  for (const module of device.modules_at_peak || []) {
    const node = nodeOf(named(module.name));
    const categories = module.categories || {other: module.bytes};
    for (const [category, bytes] of Object.entries(categories))
      if (bytes > 0)
        addPart(node, category, bytes);
  }
  joinLists(root, nodes);
  return root;
}

// A list that holds nothing itself is one node with its members, "layers.*".
function joinLists(node, nodes) {
  node.inside = node.inside.map((list) => {
    const [members] = list.inside;
    if (list.parts.length || list.inside.length !== 1 || members.label !== "*")
      return list;
    nodes.set(list.name, members);
    return Object.assign(members, {label: `${list.label}.*`, above: node});
  });
  for (const inner of node.inside)
    joinLists(inner, nodes);
}

// What NODE holds itself: one part of each category.
function addPart(node, category, bytes) {
  const known = node.parts.find((part) => part.category === category);
  if (known)
    known.bytes += bytes;
  else
    node.parts.push({category, bytes, above: node});
}

const isModule = (node) => Boolean(node.data.inside);

function treemapLayOut(width, height) {
  const root = d3.hierarchy(treemap.shown, (node) =>
    node.inside && [...node.inside, ...node.parts])
    .sum((node) => node.bytes || 0).sort((a, b) => b.value - a.value);
  d3.treemap().size([width, height]).round(true).paddingInner(1)
    .paddingTop((node) => node.depth && node.depth < 5 && isModule(node) &&
      node.x1 - node.x0 > 44 && node.y1 - node.y0 > HEAD + 12 ? HEAD : 0)(root);
  treemap.nodes = root.descendants();
}

function drawLeaf(context, node) {
  const width = node.x1 - node.x0, height = node.y1 - node.y0;
  const color = colorOf(node.data.category);
  context.fillStyle = color;
  context.fillRect(node.x0, node.y0, width, height);
  if (width < 40 || height < 20)
    return;
  context.fillStyle = inkOn(color);
  const bytes = formatBytes(node.value), name = wordsOf(node.data.category);
  const fits = (text) => context.measureText(text).width <= width - 10;
  const lines = height > 36 && fits(name) ? [name, bytes] : [bytes];
  lines.filter(fits).forEach((line, i) =>
    context.fillText(line, node.x0 + 5, node.y0 + 15 + 15 * i));
}

function drawBranch(context, node) {
  const inside = node.children || [], width = node.x1 - node.x0;
  const room = inside.length
    ? Math.min(...inside.slice(0, 1).map((c) => c.y0)) - node.y0 : 0;
  if (!node.depth || room < HEAD)
    return;
  context.fillStyle = themeColor("head");
  context.fillRect(node.x0, node.y0, width, HEAD);
  context.fillStyle = themeColor("text");
  const bytes = formatBytes(node.value);
  const wide = context.measureText(bytes).width;
  const name = shorten(node.data.label, 200);
  const both = context.measureText(name).width + wide + 20 < width;
  context.fillText(cut(context, name, width - 10), node.x0 + 5, node.y0 + 13);
  if (both) {
    context.fillStyle = themeColor("dim");
    context.fillText(bytes, node.x1 - wide - 5, node.y0 + 13);
  }
}

function drawTreemap() {
  const canvas = find("treemap-canvas");
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!treemap.shown || !width)
    return;
  const context = drawOn(canvas, width, height);
  treemapLayOut(width, height);
  for (const node of treemap.nodes)
    if (isModule(node))
      drawBranch(context, node);
    else if (node.x1 > node.x0 && node.y1 > node.y0)
      drawLeaf(context, node);
  drawChosenNode(context);
}

const choices = () => treemap.nodes[0]?.children || [];

function drawChosenNode(context) {
  const node = choices()[treemap.chosen];
  if (!node)
    return;
  context.strokeStyle = themeColor("accent");
  context.lineWidth = 3;
  context.strokeRect(node.x0 + 1.5, node.y0 + 1.5, node.x1 - node.x0 - 3,
    node.y1 - node.y0 - 3);
}

// The way from the whole to what is shown, each step a button.
function showCrumbs() {
  const steps = [];
  for (let node = treemap.shown; node; node = node.above)
    steps.unshift(node);
  find("crumbs").replaceChildren(...steps.flatMap((node, i) => {
    const button = element("button", shorten(node.label, 60));
    button.type = "button";
    button.disabled = node === treemap.shown;
    button.addEventListener("click", () => enterModule(node));
    return i ? [element("span", "›"), button] : [button];
  }));
}

function enterModule(node) {
  treemap.shown = node;
  treemap.chosen = -1;
  showCrumbs();
  drawTreemap();
  hideTip();
  saveLink();
}

const isFolded = () => find("fold").checked;

// NAME is on the map, or a member of a list there.
const isOnMap = (name) => treemap.byName.has(name) ||
  (isFolded() && treemap.byName.has(foldName(name)));

// From the table to the map.
function findInMap(name) {
  if (!treemap.byName.has(name))
    setFold(false);
  enterModule(treemap.byName.get(name));
  find("treemap").scrollIntoView();
  find("treemap-canvas").focus();
}

// The deepest rectangle there; nodes come parents first.
function nodeAt(x, y) {
  let found = null;
  for (const node of treemap.nodes)
    if (x >= node.x0 && x < node.x1 && y >= node.y0 && y < node.y1)
      found = node;
  return found;
}

// All that a module holds, by category.
function categoriesOf(node) {
  const sums = {};
  node.each((n) => {
    if (!isModule(n))
      sums[n.data.category] = (sums[n.data.category] || 0) + n.value;
  });
  return sums;
}

function tellNode(node, x, y) {
  const module = isModule(node) ? node.data : node.data.above;
  const sums = isModule(node) ? categoriesOf(node)
    : {[node.data.category]: node.value};
  showTip([
    shorten(module.name || module.label, 300),
    ...sortCategories(Object.keys(sums)).map((name) =>
      [colorOf(name), wordsOf(name) + (isModule(node) ? "" : ", itself"),
        formatBytes(sums[name])]),
    isModule(node) && Object.keys(sums).length > 1 &&
      ["", "together", formatBytes(node.value)],
    `${formatPercent(node.value, treemap.nodes[0].value)} of what is shown`,
  ], x, y);
}

function hoverTreemap(event) {
  const node = nodeAt(...place(event));
  if (node && node.value)
    tellNode(node, event.clientX, event.clientY);
  else
    hideTip();
}

// One level down, towards what was clicked; past what is all of it, and past
// the model, which has most of it, unless its name is clicked.
function clickTreemap(event) {
  const [x, y] = place(event);
  const way = (nodeAt(x, y)?.ancestors().reverse() || [])
    .slice(1).filter(isModule);
  const whole = treemap.nodes[0].value;
  const isModel = (node) => treemap.shown === treemap.root &&
    node.depth === 1 && node.value > whole / 2 && y >= node.y0 + HEAD;
  const isPassed = (node, i) => i + 1 < way.length &&
    (node.value === whole || isModel(node));
  const next = way.find((node, i) => !isPassed(node, i));
  if (next)
    enterModule(next.data);
}

function keyTreemap(event) {
  const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[
    event.key];
  const chosen = choices()[treemap.chosen];
  if (step)
    chooseNode(treemap.chosen + step);
  else if (event.key === "Enter" && chosen && isModule(chosen))
    enterModule(chosen.data);
  else if (event.key === "Escape" && treemap.shown.above)
    enterModule(treemap.shown.above);
  else
    return;
  event.preventDefault();
}

function chooseNode(index) {
  const box = find("treemap-canvas").getBoundingClientRect();
  treemap.chosen = Math.max(0, Math.min(choices().length - 1, index));
  drawTreemap();
  const node = choices()[treemap.chosen];
  if (node)
    tellNode(node, box.left + (node.x0 + node.x1) / 2,
      box.top + (node.y0 + node.y1) / 2);
}

function showTreemap(device) {
  const modules = device.modules_at_peak || [];
  find("treemap").hidden = !modules.length;
  treemap.byName.clear();
  treemap.root = moduleTree(device, treemap.byName,
    isFolded() ? foldName : (name) => name);
  find("treemap-more").textContent = device.modules_at_peak_dropped
    ? `${formatCount(device.modules_at_peak_dropped)} smaller modules are ` +
      "left out." : "";
  if (modules.length)
    enterModule(treemap.root);
}

function startTreemap() {
  const canvas = find("treemap-canvas");
  canvas.addEventListener("pointermove", hoverTreemap);
  canvas.addEventListener("pointerleave", hideTip);
  canvas.addEventListener("click", clickTreemap);
  canvas.addEventListener("keydown", keyTreemap);
  canvas.addEventListener("blur", () => {
    treemap.chosen = -1;
    hideTip();
    drawTreemap();
  });
}
