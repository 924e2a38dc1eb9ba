// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click on a heading. Only the rows in sight exist, so
// that ten thousand scroll as smoothly as ten.
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

// COLUMNS are {title, value: row => number or text, show: row => text or node,
// isText}.
class Table {
  constructor(id, columns, sortedBy, down = true) {
    this.columns = columns;
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
    this.update();
  }

  setFilter(filter) {
    this.filter = filter;
    this.update();
  }

  update() {
    const value = this.columns[this.sorted].value;
    const sign = this.down ? -1 : 1;
    this.shown = this.rows.filter(this.filter).sort((a, b) => {
      const left = value(a), right = value(b);
      return sign * (typeof left === "string" ? compareNames(left, right)
        : compare(left, right)) || compareNames(a.name ?? "", b.name ?? "");
    });
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

  gap(rows) {
    const row = element("tr", undefined, "gap"), cell = element("td");
    cell.colSpan = this.columns.length;
    cell.style.height = rows * ROW_HEIGHT + "px";
    row.append(cell);
    return row;
  }

  makeRow(data) {
    const row = element("tr");
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
