// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click on a heading. Only the rows in sight exist, so
// that ten thousand scroll as smoothly as ten. A row with `inside' stands for
// these rows, which follow it while it is `open'.
"use strict";

const ROW_HEIGHT = 32;
const ROWS_AROUND = 10;

const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;

// Numbers in names by their value: layer 2 comes before layer 10.
function compareNames(a, b) {
  const left = a.split(/(\d+)/), right = b.split(/(\d+)/);
  for (let i = 0; i < left.length && i < right.length; i++) {
    const order = i % 2 && +left[i] - +right[i] || compare(left[i], right[i]);
    if (order)
      return order;
  }
  return left.length - right.length;
}

// "layers.12.mlp" as "layers.*.mlp": the members of a list have one name.
const foldName = (name) => name.replace(/(^|\.)\d+(?=\.|$)/g, "$1*");

// ROWS with those of one folded name as one, which has the sums of KEYS.
function foldRows(rows, keys) {
  const groups = new Map();
  for (const row of rows) {
    const name = foldName(row.name);
    if (!groups.has(name))
      groups.set(name, []);
    groups.get(name).push(row);
  }
  return [...groups].map(([name, inside]) => {
    if (inside.length === 1)
      return inside[0];
    const all = {...inside[0], key: name, name, inside, open: false};
    for (const key of keys)
      all[key] = sumOf(inside.map((row) => row[key]));
    return all;
  });
}

// ROWS without lists whose members have all of the value of KEY.
function withoutLists(rows, key) {
  const byName = new Map(rows.map((row) => [row.name, row]));
  return rows.filter((row) => {
    const members = byName.get(`${row.name}.*`);
    return row.inside || !members?.inside || members[key] !== row[key];
  });
}

// The sum of numbers, of lists and of maps of them; undefined: none is known.
function sumOf(values) {
  const known = values.filter((value) => value !== undefined);
  if (!known.length || typeof known[0] === "number")
    return known.length ? sum(known) : undefined;
  const all = Array.isArray(known[0]) ? [] : {};
  for (const value of known)
    for (const [key, number] of Object.entries(value))
      all[key] = (all[key] || 0) + number;
  return all;
}

// COLUMNS are {title, value: row => number or text, show: row => text or node,
// isText, isOptional: it is not there where no row has a value; the last ones}.
class Table {
  constructor(id, columns, sortedBy, down = true) {
    this.all = this.columns = columns;
    this.sorted = sortedBy;
    this.down = down;
    this.rows = [];
    this.shown = [];
    this.filter = () => true;
    this.table = find(id + "-table");
    this.scroll = find(id + "-scroll");
    this.body = element("tbody");
    this.table.replaceChildren(this.makeHead(), this.body);
    this.scroll.addEventListener("scroll", () => this.draw());
  }

  showColumns() {
    this.columns = this.all.filter((column) => !column.isOptional ||
      this.rows.some(column.value));
    this.table.replaceChildren(this.makeHead(), this.body);
  }

  makeHead() {
    const row = element("tr");
    this.heads = this.columns.map((column, i) => {
      const head = element("th", undefined, column.isText ? "text" : "");
      const button = element("button", column.title);
      button.type = "button";
      button.addEventListener("click", () => this.sortBy(i));
      head.scope = "col";
      head.append(button);
      return head;
    });
    row.append(...this.heads);
    const group = element("thead");
    group.append(row);
    return group;
  }

  sortBy(i) {
    this.down = i === this.sorted ? !this.down : !this.columns[i].isText;
    this.sorted = i;
    this.update();
  }

  setRows(rows) {
    this.rows = rows;
    this.showColumns();
    this.update();
  }

  setFilter(filter) {
    this.filter = filter;
    this.update();
  }

  update() {
    this.shown = this.sort(this.rows.filter(this.filter)).flatMap((row) =>
      row.open ? [row, ...this.sort(row.inside)] : [row]);
    this.heads.forEach((head, i) => {
      if (i === this.sorted)
        head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else
        head.removeAttribute("aria-sort");
    });
    this.table.setAttribute("aria-rowcount", this.shown.length + 1);
    this.scroll.scrollTop = 0;
    this.draw();
  }

  sort(rows) {
    const value = this.columns[this.sorted].value;
    const sign = this.down ? -1 : 1;
    return [...rows].sort((a, b) => {
      const left = value(a), right = value(b);
      return sign * (typeof left === "string" ? compareNames(left, right)
        : compare(left, right)) || compareNames(a.name ?? "", b.name ?? "");
    });
  }

  // Shows or hides what ROW stands for; the table stays where it is.
  turn(row) {
    const top = this.scroll.scrollTop;
    row.open = !row.open;
    this.update();
    this.scroll.scrollTop = top;
    this.draw();
  }

  gap(rows) {
    const row = element("tr", undefined, "gap"), cell = element("td");
    cell.colSpan = this.columns.length;
    cell.style.height = rows * ROW_HEIGHT + "px";
    row.append(cell);
    return row;
  }

  makeRow(data) {
    const row = element("tr", undefined, data.inside ? "folded" : "");
    for (const column of this.columns) {
      const cell = element("td", undefined, column.isText ? "text" : "");
      const content = column.show(data);
      cell.append(content);
      if (typeof content === "string" && column.isText)
        cell.title = content;
      row.append(cell);
    }
    return row;
  }

  draw() {
    const sight = Math.ceil((this.scroll.clientHeight || 450) / ROW_HEIGHT);
    const first = Math.max(0,
      Math.floor(this.scroll.scrollTop / ROW_HEIGHT) - ROWS_AROUND);
    const last = Math.min(this.shown.length, first + sight + 2 * ROWS_AROUND);
    const rows = this.shown.slice(first, last).map((d) => this.makeRow(d));
    if (first)
      rows.unshift(this.gap(first));
    if (last < this.shown.length)
      rows.push(this.gap(this.shown.length - last));
    this.body.replaceChildren(...rows);
  }
}

const bytesColumn = (title, key) => ({title, value: (row) => row[key] ?? -1,
  show: (row) => row[key] === undefined ? "–" : formatBytes(row[key])});
const textColumn = (title, key) => ({title, isText: true,
  value: (row) => row[key] || "", show: (row) => shorten(row[key] || "", 400)});
const countColumn = (title, key) => ({title, value: (row) => row[key] ?? -1,
  show: (row) => row[key] === undefined ? "–" : formatCount(row[key])});

const percentColumn = (title, part, whole) => ({title,
  value: (row) => row[part] ?? -1,
  show: (row) => row[part] ? formatPercent(row[part], row[whole]) : "–"});

// What a row holds by category; WHOLE tells what fills the strip.
function stripColumn(title, key, whole) {
  return {
    title, value: (row) => total(row[key]),
    show: (row) => {
      const strip = element("div", undefined, "strip"), parts = row[key] || {};
      for (const name of sortCategories(Object.keys(parts))) {
        const piece = element("i");
        piece.style.background = colorOf(name);
        piece.style.width = `${100 * parts[name] / (whole(row) || 1)}%`;
        strip.append(piece);
      }
      strip.title = sortCategories(Object.keys(parts)).map((name) =>
        `${wordsOf(name)} ${formatBytes(parts[name])}`).join("\n");
      return strip;
    },
  };
}
