// All topics of the cluster.

import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { bytes, count, duration, plural, rate } from "../format.js";
import { choice, nothing, to } from "../parts.js";
import { makeTable, renderTable } from "../table.js";

const TOPIC = "topics";
const FILTERS = [["own", "Topics"], ["dead", "Dead letters", "Topics whose names end like those of dead letters"], ["internal", "Internal", "Topics of Kafka itself"], ["all", "All"]];
const DEAD = /(^|[._-])(dlq|dlt|dead|parked|dead[._-]letters?)$/i;

const COLUMNS = [
  { name: "name", title: "Topic", width: "minmax(140px, 2.4fr)", narrow: "minmax(110px, 2fr)", value: (row) => row.name, cell: (row) => h("span", { class: "strong" }, row.name) },
  { name: "partitions", title: "Partitions", width: "80px", narrow: "76px", right: true, value: (row) => row.partitions, cell: (row) => count(row.partitions) },
  { name: "records", title: "Records", tip: D.max_records, width: "minmax(80px, 0.9fr)", right: true, value: (row) => row.records ?? null, cell: (row) => count(row.records) },
  { name: "bytes", title: "Size", tip: D.topic_bytes, width: "84px", narrow: "76px", right: true, value: (row) => row.bytes ?? null, cell: (row) => bytes(row.bytes) },
  { name: "rate", title: "In", tip: D.topic_rate, width: "76px", right: true, wide: true, value: (row) => row.rate ?? null, cell: (row) => rate(row.rate) },
  { name: "skew", title: "Skew", tip: D.skew, width: "62px", right: true, wide: true, value: (row) => row.skew ?? null, cell: (row) => skewOf(row.skew) },
  { name: "cleanup", title: "Cleanup", tip: D.cleanup, width: "84px", wide: true, value: (row) => row.cleanup ?? null, cell: (row) => h("span", { class: "soft" }, row.cleanup || "–") },
  { name: "retention", title: "Retention", tip: D.retention, width: "84px", right: true, wide: true, value: (row) => row.retention ?? null, cell: (row) => (row.cleanup === undefined ? "–" : row.retention ? duration(row.retention) : h("span", { class: "muted" }, "for ever")) },
];

export function skewOf(skew) {
  if (skew === null || skew === undefined) return "–";
  return h("span", { class: skew >= 2 ? "warn-text" : null }, `${skew.toFixed(1)} ×`);
}

export default {
  title: () => "Topics",
  topics: () => [TOPIC],
  same: () => true,

  start(view) {
    view.state.table = makeTable({
      columns: COLUMNS, keyOf: (row) => row.name, hrefOf: (row) => to("topic", { name: row.name }),
      sortBy: "records", update: view.update, label: "Topics", seen: (keys) => view.look(TOPIC, keys),
    });
  },

  render(view) {
    const { parameters, state } = view;
    const all = [...view.topic(TOPIC).rows.values()];
    const shown = parameters.show ?? "own";
    const words = (parameters.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const rows = all.filter((row) => fits(row, shown) && words.every((word) => row.name.toLowerCase().includes(word)));
    const known = all.filter((row) => fits(row, shown));
    return [
      h("header", { class: "title", key: "title" }, h("h1", {}, "Topics"),
        h("span", { class: "note" }, rows.length === known.length ? plural(rows.length, "topic") : `${count(rows.length)} of ${plural(known.length, "topic")}`),
        h("div", { class: "actions" },
          choice({ options: FILTERS, value: shown, label: "Which topics", on: (show) => view.go({ show: show === "own" ? null : show }) }),
          h("input", { class: "field", type: "search", placeholder: "Filter ( / )", "aria-label": "Filter topics", "data-filter": true, value: parameters.q ?? "", on: { input: (event) => view.go({ q: event.target.value }) } }))),
      rows.length ? renderTable(state.table, rows)
        : known.length || all.length > known.length + 50 ? nothing({ title: "No topic matches", text: "Clear the filter to see all topics." })
          : nothing({ title: "No topics", text: "Write a first record: the command creates the topic if the broker allows it.", command: "echo hello | penstock produce orders" }),
    ];
  },
};

function fits(row, show) {
  if (show === "internal") return row.internal;
  if (show === "dead") return DEAD.test(row.name);
  return show === "all" || !row.internal;
}
