// All groups of the cluster.

import { sparkline } from "../canvas.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { count, duration, plural, rate } from "../format.js";
import { chip, choice, nothing, to, toneOf } from "../parts.js";
import { makeTable, renderTable } from "../table.js";

const TOPIC = "groups";
const FILTERS = [["all", "All"], ["lagging", "Lagging", "Groups with lag"], ["trouble", "Trouble", "Groups whose status is not OK, or that lost records"], ["active", "Active", "Groups with members"]];

const COLUMNS = [
  { name: "name", title: "Group", tip: D.group, width: "minmax(140px, 2.4fr)", narrow: "minmax(96px, 2fr)", value: (row) => row.name, cell: (row) => h("span", { class: "strong" }, row.name) },
  { name: "severity", title: "Status", tip: D.status, width: "86px", narrow: "72px", value: (row) => row.severity ?? null, cell: status },
  { name: "state", title: "State", tip: D.state, width: "minmax(70px, 0.8fr)", wide: true, value: (row) => row.state, cell: (row) => h("span", { class: "soft" }, row.type === "Classic" || row.type === "Unknown" ? row.state : `${row.state}, ${row.type.toLowerCase()}`) },
  { name: "lag", title: "Lag", tip: D.lag, width: "minmax(66px, 0.8fr)", narrow: "minmax(64px, 1fr)", right: true, value: (row) => row.lag ?? null, cell: (row) => count(row.lag) },
  { name: "lag_seconds", title: "Behind", tip: D.lag_seconds, width: "78px", narrow: "68px", right: true, value: (row) => row.lag_seconds ?? null, cell: (row) => duration(row.lag_seconds) },
  { name: "trend", title: "Trend", tip: D.trend, width: "88px", wide: true, value: (row) => (row.trend?.length > 1 ? row.trend.at(-1) - row.trend[0] : null), cell: (row) => sparkline(row.trend ?? [], { label: `Lag of ${row.name}` }) },
  { name: "rate_in", title: "In", tip: D.rate_in, width: "62px", right: true, wide: true, value: (row) => row.rate_in ?? null, cell: (row) => rate(row.rate_in) },
  { name: "rate_out", title: "Out", tip: D.rate_out, width: "62px", right: true, wide: true, value: (row) => row.rate_out ?? null, cell: (row) => rate(row.rate_out) },
  { name: "drain", title: "Drained in", tip: D.drain, width: "84px", right: true, wide: true, value: (row) => row.drain ?? null, cell: (row) => (row.lag === 0 ? h("span", { class: "muted" }, "now") : duration(row.drain)) },
  { name: "members", title: "Members", tip: D.members, width: "68px", right: true, wide: true, value: (row) => row.members ?? null, cell: (row) => count(row.members) },
  { name: "errors", title: "Errors", tip: D.group_errors, width: "56px", right: true, wide: true, value: (row) => row.errors ?? null, cell: (row) => (row.errors ? h("span", { class: "bad-text" }, count(row.errors)) : h("span", { class: "muted" }, row.errors === 0 ? "0" : "–")) },
  { name: "dead", title: "Dead", tip: D.dead, width: "54px", right: true, wide: true, value: (row) => row.dead ?? null, cell: (row) => (row.dead ? h("span", { class: "warn-text" }, count(row.dead)) : h("span", { class: "muted" }, "0")) },
  { name: "apps", title: "Apps", tip: D.apps, width: "46px", right: true, wide: true, value: (row) => row.apps, cell: (row) => (row.apps ? row.apps : h("span", { class: "muted" }, "–")) },
];

function status(row) {
  if (row.error) return chip("ERROR", "bad", row.error);
  if (row.lost) return chip("LOST", "bad", `Retention deleted ${plural(row.lost, "record")} that the group had not committed.`);
  return row.status ? chip(row.status, toneOf(row.status), row.reason || null) : h("span", { class: "muted" }, "–");
}

export default {
  title: () => "Groups",
  topics: () => [TOPIC],
  same: () => true,

  start(view) {
    view.state.table = makeTable({
      columns: COLUMNS, keyOf: (row) => row.name, hrefOf: (row) => to("group", { name: row.name }),
      sortBy: "lag", update: view.update, label: "Groups", seen: (keys) => view.look(TOPIC, keys),
    });
  },

  render(view) {
    const { parameters, state } = view;
    const all = [...view.topic(TOPIC).rows.values()];
    if (!all.length) {
      return [heading(view, all, all), nothing({ title: "This cluster has no groups yet", text: "A group appears when its first consumer joins. This starts one that comes with Penstock:", command: "penstock demo" })];
    }
    const words = (parameters.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const rows = all.filter((row) => fits(row, parameters.show ?? "all") && words.every((word) => `${row.name} ${row.state} ${row.type} ${row.status ?? ""}`.toLowerCase().includes(word)));
    return [
      heading(view, all, rows),
      rows.length ? renderTable(state.table, rows) : nothing({ title: "No group matches", text: "Clear the filter to see all groups." }),
    ];
  },
};

function heading(view, all, rows) {
  const { parameters } = view;
  const lag = all.reduce((sum, row) => sum + (row.lag ?? 0), 0);
  const said = rows.length === all.length ? plural(all.length, "group") : `${count(rows.length)} of ${plural(all.length, "group")}`;
  return h("header", { class: "title", key: "title" },
    h("h1", {}, "Groups"), h("span", { class: "note" }, `${said} · ${plural(lag, "record")} of lag`),
    h("div", { class: "actions" },
      choice({ options: FILTERS, value: parameters.show ?? "all", label: "Which groups", on: (show) => view.go({ show: show === "all" ? null : show }) }),
      h("input", { class: "field", type: "search", placeholder: "Filter ( / )", "aria-label": "Filter groups", "data-filter": true, value: parameters.q ?? "", on: { input: (event) => view.go({ q: event.target.value }) } })));
}

function fits(row, show) {
  if (show === "lagging") return row.lag > 0;
  if (show === "trouble") return row.severity > 0 || row.lost > 0 || Boolean(row.error);
  if (show === "active") return row.members > 0;
  return true;
}
