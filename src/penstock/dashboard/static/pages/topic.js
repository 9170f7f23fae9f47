// One topic: its partitions, how even they are, and its hot keys.

import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { bytes, count, duration, percent, plural, rate } from "../format.js";
import { button, card, chip, figures, loading, notice, to } from "../parts.js";
import { cellOf } from "../record_parts.js";
import { skewOf } from "./topics.js";

const topicOf = (view) => `topic?${new URLSearchParams({ name: view.parameters.name })}`;
const MAX_BARS = 200;

export default {
  title: (view) => view.parameters.name,
  topics: (view) => [topicOf(view)],
  same: (before, after) => before.name === after.name,

  start(view) {
    readKeys(view, 20000);
  },

  render(view) {
    const rows = view.topic(topicOf(view)).rows;
    const topic = rows.get("topic");
    if (!topic) return loading();
    const parts = [...rows.values()].filter((row) => row.partition !== undefined).sort((a, b) => a.partition - b.partition);
    return [heading(view, topic), summary(topic, parts), h("div", { class: "columns", key: "charts" }, shares(view, topic, parts), keys(view)), partitions(view, parts)];
  },
};

function heading(view, topic) {
  return h("header", { class: "title", key: "title" },
    h("a", { class: "crumb", href: to("topics") }, icon("back", 14), "Topics"), h("h1", {}, topic.name), h("span", { class: "note" }, topic.cleanup ? `cleanup: ${topic.cleanup}` : ""),
    h("div", { class: "actions" }, h("a", { class: "button primary", key: "records", href: to("records", { topic: topic.name }) }, icon("topics"), "Records"), h("a", { class: "button", key: "tail", href: to("records", { topic: topic.name, tail: 1 }) }, icon("resume"), "New records")));
}

function summary(topic, parts) {
  const behind = parts.filter((each) => each.in_sync.length < each.replicas.length).length;
  return figures([
    { name: "Records", value: count(topic.records), tip: D.max_records, href: to("records", { topic: topic.name }) },
    { name: "Size", value: bytes(topic.bytes), tip: D.topic_bytes },
    { name: "In", value: rate(topic.rate), tip: D.topic_rate },
    { name: "Skew", value: skewOf(topic.skew), tip: D.skew },
    { name: "Partitions", value: count(topic.partitions) },
    { name: "Replicas", value: count(topic.replication), tip: "Copies of each partition, with the leader.", extra: behind ? `${plural(behind, "partition")} behind` : null, tone: behind ? "warn" : null },
    { name: "Retention", value: topic.retention ? duration(topic.retention) : "for ever", tip: D.retention },
    { name: "Oldest goes in", value: topic.margin === null ? "–" : duration(topic.margin), tip: D.topic_margin },
  ]);
}

function shares(view, topic, parts) {
  const most = Math.max(1, ...parts.map((each) => each.records ?? 0)), all = parts.reduce((sum, each) => sum + (each.records ?? 0), 0);
  const mean = all / Math.max(1, parts.length);
  return card({ title: "Records by partition", key: "shares", tip: D.skew, note: parts.length > MAX_BARS ? `the first ${count(MAX_BARS)} of ${count(parts.length)}` : null },
    h("div", { class: "tall", tabindex: 0, role: "group", "aria-label": "Records by partition" }, parts.slice(0, MAX_BARS).map((each) => h("div", { key: each.partition, class: "share", tip: `${plural(each.records ?? 0, "record")}, ${percent(each.records ?? 0, all)} of all` },
      h("a", { href: to("records", { topic: topic.name, partition: each.partition }) }, `${each.partition}`), h("div", {}, h("i", { class: each.records > 1.5 * mean && parts.length > 1 ? "much" : "", style: { width: `${(100 * (each.records ?? 0)) / most}%` } })), h("span", { class: "right" }, count(each.records))))));
}

async function readKeys(view, sample) {
  const { state } = view;
  Object.assign(state, { sample, keysProblem: null, reading: true });
  view.update();
  try {
    state.keys = await view.get("keys", { name: view.parameters.name, sample });
  } catch (error) {
    state.keysProblem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  state.reading = false;
  view.update();
}

function keys(view) {
  const { keys: found, keysProblem, sample, reading } = view.state;
  const more = found?.total >= sample && sample < 1000000 ? button({ text: reading ? "Counting…" : `Count ${count(sample * 10 > 1000000 ? 1000000 : sample * 10)}`, key: "more", disabled: reading, tip: "Count the keys of more records. It reads them all.", on: () => readKeys(view, Math.min(1000000, sample * 10)) }) : null;
  const frame = { title: "Hot keys", key: "keys", tip: "The most frequent keys of the last records. One lane works on a key, and one member on a partition: a hot key limits the parallelism.", note: found?.total ? `of the last ${plural(found.total, "record")}, with about ${plural(found.distinct, "key")}` : null, actions: more };
  if (keysProblem) return card(frame, notice(keysProblem, "warn"));
  if (!found) return card(frame, loading("Counting keys…"));
  if (!found.keys.length) return card(frame, h("p", { class: "soft" }, found.total ? "No record has a key." : "There are no records."));
  return card(frame,
    h("div", { class: "scroll-x tall", tabindex: 0 }, h("table", { class: "plain-table" }, h("thead", {}, h("tr", {}, h("th", {}, "Key"), h("th", { class: "right" }, "Records"), h("th", { class: "right" }, "Share"), h("th", {}, "Partitions"))),
      h("tbody", {}, found.keys.slice(0, 12).map((each) => h("tr", { key: each.key }, h("td", {}, h("a", { href: to("records", { topic: view.parameters.name, key: each.key }) }, cellOf(each.key))), h("td", { class: "right" }, each.least === each.most ? count(each.least) : `${count(each.least)} – ${count(each.most)}`),
        h("td", { class: "right" }, each.least / found.total >= found.hot_from ? chip(percent(each.least, found.total), "warn", "A hot key: it has a large part of a partition's fair share.") : percent(each.least, found.total)), h("td", { class: "soft" }, each.partitions.join(", "))))))),
    found.strays ? notice({ problem: `${plural(found.strays, "key is", "keys are")} in several partitions, or not in that of Kafka's default partitioner.`, hint: "Their order is not guaranteed." }, "warn") : null,
    found.remedies.length ? h("div", { key: "remedies" }, found.remedies.map((each) => h("p", { key: each.name, class: "remedy" }, h("span", { class: "strong" }, `${each.name}: `), each.why, h("span", { class: "soft" }, ` Costs: ${each.costs}`)))) : h("p", { class: "remedy soft", key: "even" }, "No key is hot enough to matter."));
}

function partitions(view, parts) {
  return card({ title: "Partitions", key: "partitions" }, h("div", { class: "scroll-x tall", tabindex: 0 }, h("table", { class: "plain-table" },
    h("thead", {}, h("tr", {}, [["Partition"], ["Leader"], ["In sync"], ["Start", D.start], ["End", D.end], ["Records", D.max_records], ["In", D.topic_rate], ["Size", D.topic_bytes], ["Oldest", "The age of its first record."]].map(([name, tip], index) => h("th", { key: name, class: index > 2 ? "right" : null, tip: tip ?? null }, name)))),
    h("tbody", {}, parts.slice(0, 500).map((each) => h("tr", { key: each.partition },
      h("td", {}, h("a", { href: to("records", { topic: view.parameters.name, partition: each.partition }) }, String(each.partition)), each.error ? chip("ERROR", "bad", each.error) : null),
      h("td", {}, String(each.leader)), h("td", { class: each.in_sync.length < each.replicas.length ? "warn-text" : null }, `${each.in_sync.length} of ${each.replicas.length}`),
      h("td", { class: "right" }, count(each.start)), h("td", { class: "right" }, count(each.end)), h("td", { class: "right" }, count(each.records)), h("td", { class: "right" }, rate(each.rate)), h("td", { class: "right" }, bytes(each.bytes)), h("td", { class: "right" }, duration(each.age))))))),
    parts.length > 500 ? h("p", { class: "soft" }, `The first 500 of ${count(parts.length)}.`) : null);
}
