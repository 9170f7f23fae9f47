// A table that keeps only the visible rows in the page, so that thousands of rows scroll smoothly.

import { h } from "./dom.js";

const ROW = 36;
const SPARE = 6;

/**
 * The state of one table; keep it as long as the page is open. Columns: { name, title, tip, width (of the grid), right
 * (a number), value(row) (to sort), cell(row) (to show), wide (left out on phones) }.
 */
export function makeTable({ columns, keyOf, hrefOf, sortBy, descending = true, update, seen, label }) {
  return { columns, keyOf, hrefOf, sortBy, descending, update, seen, label, top: 0, height: 600, chosen: null };
}

export function sorted(table, rows) {
  const column = table.columns.find((each) => each.name === table.sortBy) ?? table.columns[0];
  const sign = table.descending ? -1 : 1;
  return rows
    .map((row) => [row, column.value(row)])
    .sort(([a, x], [b, y]) => {
      if (x === y) return String(table.keyOf(a)).localeCompare(String(table.keyOf(b)));
      // Unknown values come last in both orders.
      if (x === null || x === undefined) return 1;
      if (y === null || y === undefined) return -1;
      return sign * (typeof x === "string" ? x.localeCompare(String(y)) : x - y);
    })
    .map(([row]) => row);
}

export function renderTable(table, rows) {
  const all = sorted(table, rows);
  const first = Math.max(0, Math.floor(table.top / ROW) - SPARE);
  const last = Math.min(all.length, Math.ceil((table.top + table.height) / ROW) + SPARE);
  const visible = all.slice(first, last);
  table.rows = all;
  table.seen?.(visible.map(table.keyOf));
  const grid = {
    "--columns": table.columns.map((each) => each.width ?? "1fr").join(" "),
    "--columns-narrow": table.columns.filter((each) => !each.wide).map((each) => each.narrow ?? each.width ?? "1fr").join(" "),
  };
  return h("div", { class: "table", key: "table", role: "table", "aria-label": table.label, "aria-rowcount": String(all.length + 1), style: grid },
    h("div", { class: "row head", role: "row" }, table.columns.map((column) => header(table, column))),
    h("div", { class: "table-body", role: "rowgroup", tabindex: 0, "aria-label": table.label, mounted: (node) => watch(table, node), on: { scroll: (event) => scrolled(table, event.target), keydown: (event) => keyed(table, event) } },
      h("div", { class: "table-space", role: "presentation", style: { height: `${all.length * ROW}px` } },
        visible.map((row, index) => line(table, row, first + index)))));
}

function header(table, column) {
  const active = column.name === table.sortBy;
  return h("div", { key: column.name, role: "columnheader", class: classes(column), "aria-sort": active ? (table.descending ? "descending" : "ascending") : "none" },
    h("button", { type: "button", tip: column.tip ?? null, on: { click: () => sortBy(table, column) } }, column.title, h("span", { class: "arrow", "aria-hidden": "true" }, active ? (table.descending ? "↓" : "↑") : "")));
}

function line(table, row, index) {
  const key = table.keyOf(row);
  const href = table.hrefOf?.(row);
  return h(href ? "a" : "div", { key, href: href ?? null, tabindex: href ? -1 : null, role: "row", "aria-rowindex": String(index + 2), class: `row ${key === table.chosen ? "chosen" : ""}`, style: { transform: `translateY(${index * ROW}px)` } },
    table.columns.map((column) => h("div", { key: column.name, role: "cell", class: classes(column) }, column.cell(row))));
}

function classes(column) {
  return [column.right ? "right" : "", column.wide ? "wide" : ""].join(" ").trim();
}

function sortBy(table, column) {
  if (table.sortBy === column.name) table.descending = !table.descending;
  else [table.sortBy, table.descending] = [column.name, Boolean(column.right)];
  table.update();
}

function watch(table, node) {
  new ResizeObserver(() => {
    if (node.clientHeight && node.clientHeight !== table.height) {
      table.height = node.clientHeight;
      table.update();
    }
  }).observe(node);
  node.scrollTop = table.top;
  table.node = node;
}

function scrolled(table, node) {
  const before = Math.floor(table.top / ROW);
  table.top = node.scrollTop;
  if (Math.floor(table.top / ROW) !== before) table.update();
}

function keyed(table, event) {
  const moves = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity };
  if (event.key in moves) {
    const at = table.rows.findIndex((row) => table.keyOf(row) === table.chosen);
    const next = Math.min(table.rows.length - 1, Math.max(0, at === -1 ? 0 : at + moves[event.key]));
    if (!table.rows.length) return;
    table.chosen = table.keyOf(table.rows[next]);
    const top = next * ROW;
    if (top < table.node.scrollTop) table.node.scrollTop = top;
    else if (top + ROW > table.node.scrollTop + table.node.clientHeight) table.node.scrollTop = top + ROW - table.node.clientHeight;
    event.preventDefault();
    table.update();
  } else if (event.key === "Enter" && table.chosen !== null) {
    const row = table.rows.find((each) => table.keyOf(each) === table.chosen);
    const href = row && table.hrefOf?.(row);
    if (href) location.hash = href;
  }
}
