// SPDX-License-Identifier: Apache-2.0
// Tables that sort by a click on a heading. Only the rows in sight exist, so
// that ten thousand scroll as smoothly as ten.
"use strict";

const ROW_HEIGHT = 29;
const ROWS_AROUND = 10;

// COLUMNS are {title, value: row => number or text, show: row => text or node}.
class Table {
  constructor(id, columns, sortedBy) {
    this.columns = columns;
    this.sorted = sortedBy;
    this.down = true;
    this.rows = [];
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
      const head = element("th"), button = element("button", column.title);
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
    const isText = this.rows.length &&
      typeof this.columns[i].value(this.rows[0]) === "string";
    this.down = i === this.sorted ? !this.down : !isText;
    this.sorted = i;
    this.update();
  }

  setRows(rows) {
    this.rows = rows;
    this.scroll.scrollTop = 0;
    this.update();
  }

  setFilter(filter) {
    this.filter = filter;
    this.scroll.scrollTop = 0;
    this.update();
  }

  update() {
    const value = this.columns[this.sorted].value;
    const sign = this.down ? -1 : 1;
    this.shown = this.rows.filter(this.filter).sort((a, b) => {
      const left = value(a), right = value(b);
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
    this.heads.forEach((head, i) => {
      const here = i === this.sorted;
      const arrow = here ? (this.down ? " ▾" : " ▴") : "";
      head.firstChild.textContent = this.columns[i].title + arrow;
      if (here)
        head.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else
        head.removeAttribute("aria-sort");
    });
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
      const cell = element("td"), content = column.show(data);
      cell.append(content);
      if (typeof content === "string")
        cell.title = content;
      row.append(cell);
    }
    return row;
  }

  draw() {
    const sight = Math.ceil((this.scroll.clientHeight || 430) / ROW_HEIGHT);
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

const bytesColumn = (title, key) => ({title, value: (row) => row[key] || 0,
  show: (row) => row[key] === undefined ? "" : formatBytes(row[key])});
const textColumn = (title, key) => ({title, value: (row) => row[key] || "",
  show: (row) => row[key] || ""});
const countColumn = (title, key) => ({title, value: (row) => row[key] || 0,
  show: (row) => row[key] === undefined ? "" : String(row[key])});

// What a row holds by category, as long as it is large among all rows.
function stripColumn(title, key) {
  return {
    title, value: (row) => total(row[key]),
    show: (row) => {
      const strip = element("div", undefined, "strip");
      const parts = row[key] || {};
      for (const name of sortCategories(Object.keys(parts))) {
        const piece = element("span");
        piece.style.background = colorOf(name);
        piece.style.width = `${100 * parts[name] / (row.most || 1)}%`;
        strip.append(piece);
      }
      strip.title = sortCategories(Object.keys(parts)).map((name) =>
        `${name} ${formatBytes(parts[name])}`).join("\n");
      return strip;
    },
  };
}
