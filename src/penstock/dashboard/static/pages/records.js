// The records of a topic: the last ones, from an offset or a time, by a filter, or as they come.

import { h } from "../dom.js";
import { icon } from "../icons.js";
import { count, plural } from "../format.js";
import { button, card, choice, link, loading, notice, nothing, to } from "../parts.js";
import { cellOf, formatChoice, pairs, whenOf, wholeRecord } from "../record_parts.js";

const ASKED = ["topic", "partition", "offset", "since", "where", "key", "as"];
const tailOf = (view) => `new-records?${new URLSearchParams(Object.entries(view.parameters).filter(([name]) => ["topic", "partition", "where", "key", "as"].includes(name)))}`;
const MODES = [["end", "Last", "The last 100 records"], ["offset", "Offset", "From an offset on"], ["since", "Time", "From a time on"], ["new", "New", "Records as they come"]];

export default {
  title: (view) => `${view.parameters.topic} · Records`,
  topics: (view) => (view.parameters.tail ? [tailOf(view)] : []),
  waits: false,
  same: (before, after) => before.topic === after.topic,

  start(view) {
    Object.assign(view.state, { mode: null, found: null, one: null });
  },

  render(view) {
    const { parameters } = view;
    if (!parameters.topic) return nothing({ title: "No topic is chosen", text: "The page Topics lists all." });
    if (!parameters.tail) read(view);
    readOne(view);
    return [heading(view), filters(view), parameters.at ? oneCard(view) : null, parameters.tail ? tail(view) : list(view)];
  },

  key(event, view) {
    if (event.key === "Escape" && view.parameters.at) view.go({ at: null });
  },
};

const modeOf = ({ parameters, state }) => (parameters.tail ? "new" : parameters.offset !== undefined ? "offset" : parameters.since !== undefined ? "since" : state.mode ?? "end");

function heading(view) {
  const { topic, partition } = view.parameters;
  return h("header", { class: "title", key: "title" },
    h("a", { class: "crumb", href: to("topic", { name: topic }) }, icon("back", 14), topic), h("h1", {}, "Records"),
    h("span", { class: "note" }, partition === undefined ? "of all partitions" : `of partition ${partition}`),
    h("div", { class: "actions" }, formatChoice(view)));
}

function filters(view) {
  const { parameters, state } = view;
  const mode = modeOf(view);
  const set = (name) => (event) => view.go({ [name]: event.target.value.trim() || null, at: null });
  return card({ key: "filters" }, h("div", { class: "record-filters" },
    choice({ options: MODES, value: mode, label: "Which records", on: (chosen) => { state.mode = chosen; view.go({ offset: null, since: null, at: null, tail: chosen === "new" ? 1 : null }); view.update(); } }),
    mode === "offset" ? h("input", { class: "field short", key: "offset", "aria-label": "From this offset", placeholder: "offset", inputmode: "numeric", value: parameters.offset ?? "", on: { change: set("offset") } }) : null,
    mode === "since" ? h("input", { class: "field when", key: "since", "aria-label": "From this time", placeholder: "15m, or 2030-01-31T12:00", tip: "How long ago (15m, 2h, 1d), or a date and time in UTC.", value: parameters.since ?? "", on: { change: set("since") } }) : null,
    h("label", { class: "inline", key: "partition" }, "Partition", h("input", { class: "field", size: 4, inputmode: "numeric", placeholder: "all", value: parameters.partition ?? "", on: { change: set("partition") } })),
    h("label", { class: "inline", key: "key" }, "Key", h("input", { class: "field", size: 12, placeholder: "any", value: parameters.key ?? "", on: { change: set("key") } })),
    h("input", { class: "field grow mono", key: "where", type: "search", "data-filter": true, "aria-label": "Filter: a Python expression", tip: "A small, safe part of Python with key, value, headers, partition, offset and timestamp. Only records for which it is true are shown.", placeholder: 'Filter ( / ), such as  value["amount"] > 100', value: parameters.where ?? "", on: { change: set("where") } })));
}

async function read(view) {
  const { parameters, state } = view;
  const wanted = Object.fromEntries(ASKED.map((name) => [name, parameters[name]]));
  const key = JSON.stringify(wanted);
  if (state.asked === key) return;
  Object.assign(state, { asked: key, reading: true });
  try {
    const found = await view.get("read", wanted);
    if (state.asked === key) Object.assign(state, { found, problem: null });
  } catch (error) {
    if (state.asked === key) state.problem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  if (state.asked === key) state.reading = false;
  view.update();
}

function list(view) {
  const { parameters, state } = view;
  const { found, problem, reading } = state;
  const again = button({ text: reading ? "Reading…" : "Read again", key: "again", disabled: reading, on: () => { state.asked = null; view.update(); } });
  const records = found?.records ?? [];
  const one = parameters.partition !== undefined && records.length > 0;
  const offsets = records.map((each) => each.offset); // records are sorted by their times
  const steps = one ? [
    link(to("records", { ...parameters, since: null, at: null, offset: Math.max(0, Math.min(...offsets) - 100) }), "Older", { class: "button", key: "older" }),
    link(to("records", { ...parameters, since: null, at: null, offset: Math.max(...offsets) + 1 }), "Newer", { class: "button", key: "newer" }),
  ] : [];
  const filtered = parameters.where || parameters.key;
  const note = found ? `${plural(records.length, "record")}${filtered ? ` of ${count(found.scanned)} that were read` : ""}` : null;
  return card({ title: "Records", key: "list", note, actions: [...steps, again] },
    problem ? notice(problem, "warn") : null,
    found?.misses ? notice({ problem: `The filter failed for ${plural(found.misses, "record")}, which do not match.`, hint: found.example }, "warn") : null,
    found?.cut ? notice({ problem: `The filter has read ${count(found.scanned)} records and stopped.`, hint: "Choose a later offset or time to go on." }, "warn") : null,
    !found && !problem ? loading() : records.length ? table(view, [...records].reverse(), "Records") : problem ? null
      : h("p", { class: "soft" }, filtered ? "No record matches." : parameters.offset !== undefined || parameters.since !== undefined ? "There are no records from there on." : "The topic has no records."));
}

function tail(view) {
  const state = view.topic(tailOf(view));
  if (!state.complete) return card({ title: "New records", key: "list" }, state.trouble ? null : loading("Waiting for new records…"));
  const { seen, skipped } = state.rows.get("state") ?? { seen: 0, skipped: 0 };
  const records = [...state.rows].filter(([key]) => key.startsWith("record ")).map(([, row]) => row).sort((a, b) => b.at - a.at || b.partition - a.partition || b.offset - a.offset);
  return card({ title: "New records", key: "list", note: `${plural(seen, "record")} since you look${skipped ? `, ${count(skipped)} more came too fast to show` : ""}` },
    records.length ? table(view, records, "New records") : h("p", { class: "soft", role: "status" }, "None yet. They appear here as soon as they are written."));
}

function table(view, records, label) {
  const { parameters } = view;
  return h("div", { class: "scroll-x", tabindex: 0 }, h("table", { class: "plain-table records-table", "aria-label": label },
    h("thead", {}, h("tr", {}, h("th", {}, "Time"), h("th", {}, "At"), h("th", {}, "Key"), h("th", {}, "Value"))),
    h("tbody", {}, records.map((each) => {
      const at = `${each.partition}:${each.offset}`;
      return h("tr", { key: at, class: at === parameters.at ? "chosen" : null },
        h("td", {}, whenOf(each.at)), h("td", { class: "mono" }, link(to("records", { ...parameters, at }), at)), h("td", {}, cellOf(each.key)), h("td", { class: "value" }, cellOf(each.value)));
    }))));
}

async function readOne(view) {
  const { parameters, state } = view;
  const key = `${parameters.at} ${parameters.as ?? ""}`;
  if (!parameters.at || state.one?.asked === key) return;
  const [partition, offset] = parameters.at.split(":");
  const one = (state.one = { asked: key });
  try {
    one.found = await view.get("one", { topic: parameters.topic, partition, offset, as: parameters.as });
  } catch (error) {
    one.problem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  view.update();
}

function oneCard(view) {
  const { parameters, state } = view;
  const { found, problem } = state.one ?? {};
  const step = (by) => { const [partition, offset] = parameters.at.split(":"); return to("records", { ...parameters, at: `${partition}:${Math.max(0, Number(offset) + by)}` }); };
  const actions = [h("a", { key: "before", class: "icon-button", href: step(-1), "aria-label": "The offset before", tip: "The offset before" }, icon("back")), h("a", { key: "after", class: "icon-button", href: step(1), "aria-label": "The next offset", tip: "The next offset" }, icon("next")),
    h("a", { key: "close", class: "icon-button", href: to("records", { ...parameters, at: null }), "aria-label": "Close", tip: "Close (Esc)" }, icon("close"))];
  return card({ title: `${parameters.topic} ${parameters.at}`, key: "one", actions },
    problem ? notice(problem, "warn") : !found ? loading("Reading the record…") : [
      pairs([["Time", whenOf(found.at), "The timestamp of the record."], ["Partition", String(found.partition)], ["Offset", count(found.offset)]]),
      wholeRecord(found)]);
}
