// One group: heat map, lag history, assignment, and one of its partitions.

import { heatMap } from "../charts/heat_map.js";
import { lineChart } from "../charts/line_chart.js";
import { matrix } from "../charts/matrix.js";
import { partitionBar } from "../charts/partition_bar.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h, shown } from "../dom.js";
import { count, duration, plural, rate, short } from "../format.js";
import { icon } from "../icons.js";
import { card, chip, choice, figures, loading, notice, nothing, to, toneOf } from "../parts.js";
import { makeTable, renderTable } from "../table.js";

const HEATS = {
  lag: { title: "Lag", tip: D.lag, format: (value) => plural(value ?? 0, "record"), steps: [1, 10, 100, 1e3, 1e4, 1e5], legend: ["0", "1", "10", "100", "1 k", "10 k", "100 k"] },
  lag_seconds: { title: "Behind", tip: D.lag_seconds, format: duration, steps: [0.5, 5, 30, 120, 600, 3600], legend: ["0", "½ s", "5 s", "30 s", "2 m", "10 m", "1 h"] },
  rate_in: { title: "In", tip: D.rate_in, format: rate, steps: [0.1, 1, 10, 100, 1e3, 1e4], legend: ["0", "0.1", "1", "10", "100", "1 k", "10 k/s"] },
  commit_age: { title: "Commit age", tip: D.commit_age, format: duration, steps: [5, 15, 30, 60, 300, 3600], legend: ["0", "5 s", "15 s", "30 s", "1 m", "5 m", "1 h"] },
};
const WINDOWS = [["10m", "10 m"], ["1h", "1 h"], ["6h", "6 h"], ["1d", "1 d"]];
const HISTORY_MS = 15000;

const topicOf = (view) => `group?${new URLSearchParams({ name: view.parameters.name ?? "" })}`;
const partTopicOf = (view) => `partition?${new URLSearchParams({ name: view.parameters.name ?? "", at: view.parameters.at })}`;

export default {
  title: (view) => shown(view.parameters.name ?? "Group"),
  topics: (view) => (view.parameters.at ? [topicOf(view), partTopicOf(view)] : [topicOf(view)]),
  same: (before, after) => before.name === after.name,

  start(view) {
    view.state.table = makeTable({ columns: COLUMNS, keyOf: (row) => `${row.topic}/${row.partition}`, hrefOf: (row) => to("group", { ...view.parameters, at: `${row.topic}/${row.partition}` }), sortBy: "lag", update: view.update, label: "Partitions" });
    view.state.timer = setInterval(() => !document.hidden && readHistory(view), HISTORY_MS);
    readHistory(view);
  },

  close: (view) => clearInterval(view.state.timer),

  key(event, view) {
    if (event.key === "Escape" || !view.parameters.at || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const keys = partitions(view).map((each) => `${each.topic}/${each.partition}`);
    const next = keys[keys.indexOf(view.parameters.at) + (event.key === "ArrowRight" ? 1 : -1)];
    if (next) view.go({ at: next });
  },

  render(view) {
    const rows = view.topic(topicOf(view)).rows;
    const group = rows.get("group");
    if (!group) return loading();
    const parts = partitions(view);
    const members = [...rows.values()].filter((row) => Array.isArray(row.target)).sort((a, b) => a.label.localeCompare(b.label) || a.id.localeCompare(b.id));
    if (view.state.window !== windowOf(view)) readHistory(view);
    return [
      heading(view, group),
      summary(group, parts),
      h("div", { class: "columns", key: "pictures" }, heat(view, parts), history(view)),
      view.parameters.at ? onePartition(view, rows.get(`partition ${view.parameters.at}`), rows) : null,
      assignment(view, group, members, parts),
      parts.length ? card({ title: "Partitions", key: "partitions", class: "partitions-card" }, renderTable(view.state.table, parts)) : null,
    ];
  },
};

// Brokers write addresses with a slash before them.
const hostOf = (member) => member.host.replace(/^\//, "");

function partitions(view) {
  return [...view.topic(topicOf(view)).rows.entries()].filter(([key]) => key.startsWith("partition ")).map(([, row]) => row).sort((a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition);
}

function heading(view, group) {
  const said = [group.state, group.type !== "Unknown" ? group.type.toLowerCase() : "", group.assignor, group.simple ? "commits from outside" : ""].filter(Boolean).join(" · ");
  return h("header", { class: "title", key: "title" },
    h("a", { class: "crumb", href: to("groups") }, icon("back", 14), "Groups"),
    h("h1", {}, group.name), group.status ? chip(group.status, toneOf(group.status), group.reason || D.status) : null, h("span", { class: "note", tip: group.coordinator ? `Coordinator: ${group.coordinator}` : null }, said),
    h("div", { class: "actions" }, view.pages.has("rebalances") ? h("a", { key: "rebalances", class: "button", href: to("rebalances", { group: group.name }) }, icon("rebalances"), "Rebalances") : null,
      view.pages.has("whatif") ? h("a", { key: "whatif", class: "button", href: to("whatif", { group: group.name }) }, icon("whatif"), "What if") : null));
}

function summary(group, parts) {
  const above = parts.reduce((sum, each) => sum + (each.above ?? 0), 0);
  return figures([
    { name: "Lag", value: count(group.lag), tip: D.lag },
    { name: "Behind", value: duration(group.lag_seconds), tip: D.lag_seconds },
    { name: "In", value: rate(group.rate_in), tip: D.rate_in },
    { name: "Out", value: rate(group.rate_out), tip: D.rate_out },
    { name: "Drained in", value: group.lag === 0 ? "now" : duration(group.drain), tip: D.drain },
    { name: "Finished above", value: count(above), tip: D.above },
    group.lost ? { name: "Lost", value: count(group.lost), tone: "bad", tip: D.lost } : null,
    { name: "Retention", value: group.margin === null || group.margin === undefined ? "safe" : `${duration(group.margin)}`, tone: group.margin !== null && group.margin < 86400 ? (group.margin < 3600 ? "bad" : "warn") : null, tip: D.margin },
    { name: "Members", value: count(group.members), tip: D.members },
  ]);
}

function heat(view, parts) {
  const shade = view.parameters.heat in HEATS ? view.parameters.heat : "lag";
  const { format, steps, legend, title } = HEATS[shade];
  if (!parts.length) return card({ title: "Partitions now" }, nothing({ title: "No partitions", text: "The group owns none, and has committed nothing." }));
  const cells = parts.map((row) => {
    const key = `${row.topic}/${row.partition}`;
    return { key, topic: row.topic, partition: row.partition, value: row[shade] ?? null, tip: `${shown(row.topic)}-${row.partition}\n${title}: ${format(row[shade])}${row.reason ? `\n${shown(row.reason)}` : ""}`, href: to("group", { ...view.parameters, at: key }) };
  });
  return card({ title: "Partitions now", key: "heat", tip: "One cell for each partition. Choose one to see its log.", actions: choice({ options: Object.entries(HEATS).map(([key, each]) => [key, each.title, each.tip]), value: shade, label: "Colour by", on: (key) => view.go({ heat: key === "lag" ? null : key }) }) },
    heatMap({ key: "cells", cells, steps, chosen: view.parameters.at, label: `${title} of ${plural(parts.length, "partition")}`, width: Math.max(280, Math.min(innerWidth > 1200 ? (innerWidth - 290) / 2 : innerWidth - (innerWidth > 720 ? 290 : 56), 720)) }),
    h("div", { class: "legend", "aria-hidden": "true" }, legend.map((text, index) => h("span", { key: text }, h("i", { class: `heat-${index}` }), text))));
}

function history(view) {
  const { points, problem } = view.state;
  const window = windowOf(view);
  const inside = problem ? notice(problem, "warn")
    : !points ? loading("Reading the log of commits…")
    : points.every((each) => each.lag === null) ? nothing({ title: "No history", text: "The log of commits has nothing about this time. Kafka compacts it, and brokers keep none for share groups." })
    : lineChart({ key: "lag", points: points.map((each) => [each.at, each.lag]), height: 210, format: short, label: "Lag over time" });
  return card({ title: "Lag over time", key: "history", tip: "From __consumer_offsets: what the group had committed then, and where the logs ended. Gaps: Kafka has compacted those commits.", actions: choice({ options: WINDOWS, value: window, label: "How far back", on: (value) => view.go({ window: value === "1h" ? null : value }) }) }, inside);
}

const windowOf = (view) => view.parameters.window ?? "1h";

async function readHistory(view) {
  const window = windowOf(view);
  if (view.state.window !== window) view.state.points = null;
  view.state.window = window;
  try {
    const found = await view.get("history", { name: view.parameters.name, window });
    if (view.state.window === window) Object.assign(view.state, { points: found.points, problem: null });
  } catch (error) {
    view.state.problem = view.state.points ? null : { problem: error.problem ?? error.message, hint: error.hint };
  }
  view.update();
}

function onePartition(view, row, rows) {
  const part = view.topic(partTopicOf(view)).rows.get("partition");
  const close = h("a", { class: "icon-button", href: to("group", { ...view.parameters, at: null }), "aria-label": "Close", tip: "Close" }, icon("close"));
  if (!row || !part) return card({ title: `Partition ${shown(view.parameters.at)}`, key: "one", actions: close }, loading());
  const member = row.member ? rows.get(`member ${row.member}`) : null;
  return card({ title: `Partition ${shown(row.topic)}-${row.partition}`, key: "one", actions: [view.pages.has("records") ? h("a", { key: "records", href: to("records", { topic: row.topic, partition: row.partition, offset: part.committed ?? part.start }) }, "Records at the commit point") : null, close] },
    partitionBar(part),
    h("dl", { class: "pairs" }, [
      ["Status", h("span", {}, chip(row.status, toneOf(row.status)), " ", row.reason), D.status],
      ["Owner", member ? `${member.label} · ${hostOf(member)}` : "no member", "The member that owns the partition."],
      ["Committed", count(part.committed), D.committed],
      ["Lag", `${count(row.lag)} · ${duration(row.lag_seconds)} behind`, D.lag],
      ["Finished above", `${count(part.above)} in ${plural(part.ranges.length, "range")}, ${count(part.metadata_bytes)} of 4,096 bytes`, D.above],
      part.fetched === null ? null : ["In flight", plural(Math.max(0, part.fetched - (part.committed ?? part.start) - part.above), "record"), D.part_in_flight],
      ["Rates", `${rate(row.rate_in)} in · ${rate(row.rate_out)} out`, D.rate_out],
      ["Last commit", row.commit_age === null ? "not in the last 5 minutes" : `${duration(row.commit_age)} ago`, D.commit_age],
      ["Retention", row.margin === null ? "safe at these rates" : `deletes unfinished records in ${duration(row.margin)}`, D.margin],
    ].filter(Boolean).map(([name, value, tip]) => h("div", { key: name }, h("dt", { tip, tabindex: 0, class: "defined" }, name), h("dd", {}, value)))));
}

function assignment(view, group, members, parts) {
  if (group.shared) return card({ title: "Members", key: "assignment" }, h("p", { class: "soft" }, `${plural(members.length, "member")} share the records of all partitions.`));
  if (!members.length) return card({ title: "Assignment", key: "assignment" }, h("p", { class: "soft" }, group.simple ? "No member ever joined: this group only commits, as pipelines on Spark do." : "The group has no members now. Its committed offsets stay until offsets.retention.minutes (7 days by default) have passed."));
  const counts = new Map();
  const note = (topic, number) => counts.set(topic, Math.max(counts.get(topic) ?? 0, number + 1));
  parts.forEach((each) => note(each.topic, each.partition));
  members.forEach((each) => [...each.partitions, ...each.target].forEach(([topic, number]) => note(topic, number)));
  const lines = members.map((each) => ({ ...each, name: each.label, note: `${hostOf(each)}${each.rack ? ` · rack ${each.rack}` : ""}` }));
  return card({ title: "Assignment", key: "assignment", note: `${plural(members.length, "member")}, ${plural(parts.length, "partition")}`, tip: "Filled: the member owns the partition. Outlined: it will get it. Pale: it gives it up." },
    h("div", { class: "tall" }, matrix({ key: "matrix", members: lines, topics: [...counts].sort(([a], [b]) => a.localeCompare(b)), label: "Which member owns which partition", assumed: innerWidth < 720 ? 320 : 900, hrefOf: (topic, number) => to("group", { ...view.parameters, at: `${topic}/${number}` }) })));
}

const COLUMNS = [
  { name: "key", title: "Partition", width: "minmax(120px, 1.6fr)", narrow: "minmax(90px, 1.5fr)", value: (row) => `${row.topic} ${String(row.partition).padStart(6, "0")}`, cell: (row) => `${row.topic}-${row.partition}` },
  { name: "status", title: "Status", tip: D.status, width: "82px", narrow: "70px", value: (row) => row.status, cell: (row) => (row.error ? chip("ERROR", "bad", row.error) : chip(row.status, toneOf(row.status), row.reason || null)) },
  { name: "lag", title: "Lag", tip: D.lag, width: "minmax(66px, 0.8fr)", right: true, value: (row) => row.lag, cell: (row) => count(row.lag) },
  { name: "lag_seconds", title: "Behind", tip: D.lag_seconds, width: "78px", narrow: "66px", right: true, value: (row) => row.lag_seconds, cell: (row) => duration(row.lag_seconds) },
  { name: "above", title: "Above", tip: D.above, width: "64px", right: true, wide: true, value: (row) => row.above, cell: (row) => count(row.above) },
  { name: "rate_in", title: "In", tip: D.rate_in, width: "66px", right: true, wide: true, value: (row) => row.rate_in, cell: (row) => rate(row.rate_in) },
  { name: "rate_out", title: "Out", tip: D.rate_out, width: "66px", right: true, wide: true, value: (row) => row.rate_out, cell: (row) => rate(row.rate_out) },
  { name: "commit_age", title: "Last commit", tip: D.commit_age, width: "86px", right: true, wide: true, value: (row) => row.commit_age, cell: (row) => duration(row.commit_age) },
  { name: "margin", title: "Retention", tip: D.margin, width: "82px", right: true, wide: true, value: (row) => row.margin, cell: (row) => (row.margin === null || row.margin === undefined ? h("span", { class: "muted" }, "safe") : duration(row.margin)) },
  { name: "committed", title: "Committed", tip: D.committed, width: "minmax(80px, 0.8fr)", right: true, wide: true, value: (row) => row.committed, cell: (row) => count(row.committed) },
];
