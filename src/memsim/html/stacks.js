// SPDX-License-Identifier: Apache-2.0
// The memory at the peak by Python stack: each frame lies on the one that called
// it. And the stack of one block, where the map of segments is clicked.
"use strict";

const FRAME_HEIGHT = 21, FRAMES_DRAWN = 3000, NARROWEST = 0.002;
const flame = {root: null, shown: null};

const isPackage = (frame) =>
  /\/(site|dist)-packages\/|\/lib\/python3|^</.test(frame);

// "/a/b.py:3 forward" as "forward b.py:3".
function shortFrame(frame) {
  const found = /^(.*?)([^/]*:\d+) (\S+)$/.exec(frame);
  return found ? `${found[3]} ${found[2]}` : frame;
}

function addBlock(root, frames, block) {
  let node = root;
  root.bytes += block.bytes;
  for (const [name, kind] of frames) {
    const key = kind + name;
    if (!node.children.has(key))
      node.children.set(key, {name, kind, bytes: 0, children: new Map(),
        parent: node});
    node = node.children.get(key);
    node.bytes += block.bytes;
  }
}

// The tree of STACKS, texts with the innermost frame first, that blocks of
// SEGMENTS name. What has no stack, backward's for one, is told by its module.
function flameTree(segments, stacks) {
  const root = {name: "all", kind: "own", bytes: 0, children: new Map()};
  for (const block of segments.flatMap((segment) => segment.blocks || [])) {
    if (isFree(block))
      continue;
    const stack = stacks[block.stack];
    const frames = stack === undefined
      ? [["no Python stack", "leaf"], [block.module || NO_MODULE, "leaf"]]
      : stack.split("\n").reverse().map((frame) =>
        [frame, isPackage(frame) ? "package" : "own"]);
    frames.push([block.operator || block.label || block.category || "?",
      "leaf"]);
    addBlock(root, frames, block);
  }
  return root;
}

function frameButton(node, left, width, depth) {
  const button = element("button", shortFrame(node.name), node.kind);
  button.type = "button";
  button.style.left = 100 * left + "%";
  button.style.width = 100 * width + "%";
  button.style.top = depth * FRAME_HEIGHT + "px";
  button.setAttribute("role", "treeitem");
  button.ariaLabel = `${shortFrame(node.name)}, ${formatBytes(node.bytes)}`;
  const tell = (x, y) => showTip([shorten(node.name, 400),
    ["", formatPercent(node.bytes, flame.root.bytes) + " of the peak",
      formatBytes(node.bytes)]], x, y);
  button.addEventListener("pointermove", (e) => tell(e.clientX, e.clientY));
  button.addEventListener("pointerleave", hideTip);
  button.addEventListener("blur", hideTip);
  button.addEventListener("focus", () => {
    const box = button.getBoundingClientRect();
    tell(box.left + 10, box.bottom);
  });
  button.addEventListener("click", () => {
    hideTip();
    drawFlame(flame.shown === node ? node.parent || flame.root : node);
  });
  return button;
}

function drawFlame(shown) {
  const graph = find("stacks-graph"), buttons = [];
  let depth = 0, deepest = 0, dropped = 0;
  flame.shown = shown;
  for (let node = shown; node; node = node.parent)
    depth++;
  let above = shown;
  for (let at = depth - 1; at >= 0; at--, above = above.parent)
    buttons.push(frameButton(above, 0, 1, at));
  const place = (node, left, width, level) => {
    deepest = Math.max(deepest, level);
    for (const child of [...node.children.values()].sort((a, b) =>
      b.bytes - a.bytes)) {
      const share = width * child.bytes / node.bytes;
      if (share < NARROWEST || buttons.length >= FRAMES_DRAWN) {
        dropped++;
        continue;
      }
      buttons.push(frameButton(child, left, share, level));
      place(child, left, share, level + 1);
      left += share;
    }
  };
  place(shown, 0, 1, depth);
  graph.style.height = (deepest + 1) * FRAME_HEIGHT + "px";
  graph.replaceChildren(...buttons);
  find("stacks-path").textContent = shown === flame.root ? "" :
    `${shortFrame(shown.name)}: ${formatBytes(shown.bytes)}, ` +
    `${formatPercent(shown.bytes, flame.root.bytes)} of the peak`;
  find("stacks-more").textContent = dropped
    ? `${plural(dropped, "narrow frame")} not drawn.` : "";
}

// The frames as the page shows them, on CONTEXT, WIDTH pixels wide.
function paintStacks(context, width) {
  context.font = "12px ui-monospace, monospace";
  context.textBaseline = "middle";
  for (const button of find("stacks-graph").children) {
    const style = getComputedStyle(button);
    const share = (value) => width * parseFloat(value) / 100;
    const [left, wide, top] = [share(button.style.left),
      share(button.style.width), parseFloat(button.style.top)];
    context.save();
    context.beginPath();
    context.rect(left, top, Math.max(wide - 1, 0.5), FRAME_HEIGHT - 1);
    context.fillStyle = style.backgroundColor;
    context.fill();
    context.clip();
    context.fillStyle = style.color;
    context.fillText(button.textContent, left + 4, top + FRAME_HEIGHT / 2);
    context.restore();
  }
}

function showStacks(device, segments) {
  const stacks = device.stacks || [];
  find("stacks").hidden = !stacks.length;
  find("segments-stack").hidden = true;
  if (!stacks.length)
    return;
  flame.root = flameTree(segments, stacks);
  drawFlame(flame.root);
}

// Under the map of segments: all that is known of BLOCK.
function showBlock(device, block) {
  const text = find("segments-stack");
  text.hidden = false;
  text.textContent = [`${formatBytes(block.bytes)}, ${isFree(block) ? "free"
    : wordsOf(block.category || "in use")}`,
    block.module && "module " + visible(block.module),
    block.operator && "operator " + visible(block.operator),
    block.label && "first used by " + visible(block.label),
    "", ...((device.stacks || [])[block.stack] ||
      "no Python stack (--stacks records them)").split("\n").map(visible)]
    .filter((line) => line !== undefined).join("\n");
}
