// SPDX-License-Identifier: Apache-2.0
// Modules as nested rectangles: d3-hierarchy lays them out, a canvas shows
// them, so that tens of thousands stay quick.
"use strict";

const treemap = {root: null, shown: null, nodes: []};

function newNode(name, path) {
  return {name, path, inside: new Map(), parts: []};
}

// The tree of dotted names; a module's own bytes are leaves by category.
function moduleTree(modules) {
  const root = newNode("all", "");
  for (const module of modules) {
    let node = root, path = "";
    for (const word of (module.name || NO_MODULE).split(".")) {
      path = path ? path + "." + word : word;
      if (!node.inside.has(word))
        node.inside.set(word, newNode(word, path));
      node = node.inside.get(word);
    }
    const categories = module.categories || {other: module.bytes};
    for (const [category, bytes] of Object.entries(categories))
      if (bytes > 0)
        node.parts.push({name: category, path, category, bytes});
  }
  return root;
}

function treemapLayOut(width, height) {
  const inner = (node) => node.inside
    ? [...node.inside.values(), ...node.parts] : null;
  const root = d3.hierarchy(treemap.shown, inner)
    .sum((node) => node.bytes || 0).sort((a, b) => b.value - a.value);
  d3.treemap().size([width, height]).paddingInner(1)
    .paddingTop((node) => node.depth && node.x1 - node.x0 > 50 &&
      node.y1 - node.y0 > 34 && node.depth < 4 ? 16 : 0)(root);
  treemap.nodes = root.descendants();
}

function drawLeaf(context, node) {
  const width = node.x1 - node.x0, height = node.y1 - node.y0;
  if (width < 0.3 || height < 0.3)
    return;
  context.fillStyle = colorOf(node.data.category);
  context.fillRect(node.x0, node.y0, width, height);
  if (width < 46 || height < 15)
    return;
  context.fillStyle = inkOn(colorOf(node.data.category));
  context.fillText(cut(context, node.data.name, width - 6), node.x0 + 3,
    node.y0 + 12);
  if (height > 30)
    context.fillText(cut(context, formatBytes(node.value), width - 6),
      node.x0 + 3, node.y0 + 25);
}

function drawBranch(context, node) {
  const inside = node.children || [];
  const room = inside.length ? Math.min(...inside.map((c) => c.y0)) - node.y0
    : 0;
  if (!node.depth || room < 14)
    return;
  context.fillStyle = themeColor("line");
  context.fillRect(node.x0, node.y0, node.x1 - node.x0, 15);
  context.fillStyle = themeColor("text");
  context.fillText(cut(context, `${node.data.name}  ${formatBytes(node.value)}`,
    node.x1 - node.x0 - 6), node.x0 + 3, node.y0 + 11);
}

function drawTreemap() {
  const canvas = find("treemap-canvas");
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!treemap.shown || !width)
    return;
  const context = drawOn(canvas, width, height);
  context.font = "11px system-ui, sans-serif";
  treemapLayOut(width, height);
  for (const node of treemap.nodes)
    if (node.data.category)
      drawLeaf(context, node);
    else
      drawBranch(context, node);
}

// The path from the whole to what is shown, each step a button.
function showCrumbs() {
  const steps = [treemap.root];
  if (treemap.shown !== treemap.root)
    for (const word of treemap.shown.path.split("."))
      steps.push(steps[steps.length - 1].inside.get(word));
  find("crumbs").replaceChildren(...steps.flatMap((node, i) => {
    const button = element("button", node.name);
    button.type = "button";
    button.addEventListener("click", () => enterModule(node));
    return i ? [" › ", button] : [button];
  }));
}

function enterModule(node) {
  treemap.shown = node;
  showCrumbs();
  drawTreemap();
  hideTip();
}

// The deepest rectangle there; nodes come parents first.
function nodeAt(x, y) {
  let found = null;
  for (const node of treemap.nodes)
    if (x >= node.x0 && x < node.x1 && y >= node.y0 && y < node.y1)
      found = node;
  return found;
}

function hoverTreemap(event) {
  const node = nodeAt(...place(event));
  if (!node || !node.value) {
    hideTip();
    return;
  }
  const all = treemap.nodes[0].value;
  showTip([node.data.path || "all", node.data.category, formatBytes(node.value) +
    `, ${formatPercent(node.value, all)} of what is shown`]
    .filter(Boolean).join("\n"), event);
}

// One level down, towards what was clicked.
function clickTreemap(event) {
  const chain = nodeAt(...place(event))?.ancestors().reverse() || [];
  const next = chain[1];
  if (next && next.data.inside)
    enterModule(next.data);
}

function showTreemap(device) {
  const modules = device.modules_at_peak || [];
  find("treemap").hidden = !modules.length;
  treemap.root = treemap.shown = moduleTree(modules);
  if (modules.length)
    enterModule(treemap.root);
}

function startTreemap() {
  const canvas = find("treemap-canvas");
  canvas.addEventListener("mousemove", hoverTreemap);
  canvas.addEventListener("mouseleave", hideTip);
  canvas.addEventListener("click", clickTreemap);
}
