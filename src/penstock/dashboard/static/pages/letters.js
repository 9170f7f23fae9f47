// Dead letters: topics; of one topic the reasons, the times, the letters, one letter, and a replay.

import { barChart } from "../charts/bar_chart.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { clock, count, duration, plural } from "../format.js";
import { button, card, chip, figures, loading, notice, nothing, to } from "../parts.js";
import { cellOf, formatChoice, pairs, whenOf, wholeRecord } from "../record_parts.js";
import { replayCard, replaysOf } from "./letters_replay.js";

const FILTERS = ["reason", "source", "group", "since", "until", "where"];
const ALL = "letter-topics";
const topicOf = (view) => `letters?${new URLSearchParams({ topic: view.parameters.topic })}`;

export default {
  title: (view) => (view.parameters.topic ? `${view.parameters.topic} · Dead letters` : "Dead letters"),
  topics: (view) => (view.parameters.topic ? [topicOf(view), "replays"] : [ALL, "replays"]),
  same: (before, after) => before.topic === after.topic,

  start(view) {
    Object.assign(view.state, { chosen: new Set(), list: null, letter: null, plan: null, form: { to: "", rate: "", again: false } });
  },

  render(view) {
    return view.parameters.topic ? oneTopic(view) : allTopics(view);
  },

  key(event, view) {
    if (event.key === "Escape" && view.parameters.at) view.go({ at: null });
  },
};

function allTopics(view) {
  const rows = [...view.topic(ALL).rows.values()];
  const topics = rows.filter((row) => row.topic).sort((a, b) => b.count - a.count || a.topic.localeCompare(b.topic));
  const replays = rows.filter((row) => row.replay).sort((a, b) => a.number - b.number).map((row) => row.replay);
  return [
    h("header", { class: "title", key: "title" }, h("h1", {}, "Dead letters"), h("span", { class: "note" }, `${plural(topics.length, "topic")} · ${plural(topics.reduce((sum, each) => sum + each.count, 0), "record")} at most`)),
    replaysOf(view, null),
    topics.length ? card({ title: "Topics", key: "topics", tip: "Topics whose names end with dlq, dlt, dead, dead-letter or parked." },
      h("div", { class: "scroll-x", tabindex: 0 }, h("table", { class: "plain-table" },
        h("thead", {}, h("tr", {}, h("th", {}, "Topic"), h("th", { class: "right", tip: "The offsets of its logs. Compacted records and transactions count too." }, "Records"))),
        h("tbody", {}, topics.map((each) => h("tr", { key: each.topic }, h("td", {}, h("a", { href: to("letters", { topic: each.topic }) }, each.topic)), h("td", { class: "right" }, count(each.count))))))))
      : nothing({ title: "No dead letters", text: "No topic's name looks like one of dead letters, such as orders.dlq. A handler gets one with dead_letter=. What then fails for good goes there with its reason, and waits for a replay." }),
    replays.length ? audit(replays) : null,
  ];
}

function audit(replays) {
  return card({ title: "Replays so far", key: "audit", tip: "From the audit file of this machine: who replayed what and when, with the command line or here." },
    h("div", { class: "scroll-x", tabindex: 0 }, h("table", { class: "plain-table" },
      h("thead", {}, h("tr", {}, ["When", "Who", "Topic", "Sent", "Command"].map((name) => h("th", { key: name, class: name === "Sent" ? "right" : null }, name)))),
      h("tbody", {}, replays.map((each, index) => h("tr", { key: index },
        h("td", {}, whenOf(each.at)), h("td", {}, each.by), h("td", {}, h("a", { href: to("letters", { topic: each.topic }) }, each.topic)),
        h("td", { class: "right" }, count(each.sent), each.open ? chip(`${count(each.open)} unsure`, "warn", "The last batch was not confirmed: Kafka has all of it or nothing. The next replay sends what is missing.") : null),
        h("td", { class: "mono" }, each.command)))))));
}

function oneTopic(view) {
  const { parameters, state } = view;
  const rows = view.topic(topicOf(view)).rows;
  const topic = rows.get("topic") ?? { topic: parameters.topic, count: 0 };
  const reasons = [...rows].filter(([key]) => key.startsWith("reason ")).map(([, row]) => row).sort((a, b) => b.count - a.count);
  readList(view, topic.count);
  readLetter(view);
  return [
    h("header", { class: "title", key: "title" },
      h("a", { class: "crumb", href: to("letters") }, icon("back", 14), "Dead letters"), h("h1", {}, parameters.topic),
      h("span", { class: "note", role: "status" }, topic.reading ? `reading… ${count(topic.count)} so far` : plural(topic.count, "dead letter")),
      h("div", { class: "actions" }, formatChoice(view))),
    replaysOf(view, parameters.topic),
    !topic.count && !topic.reading ? nothing({ title: "No dead letters", text: "Nothing has failed for good, or retention has deleted it." }) : [
      summary(reasons),
      h("div", { class: "columns", key: "charts" }, reasonsCard(view, reasons), timesCard(view, rows.get("times"))),
      parameters.at ? letterCard(view) : null,
      state.plan || state.planProblem ? replayCard(view, reread) : null,
      listCard(view),
    ],
  ];
}

function summary(reasons) {
  const sources = new Set(reasons.map((each) => each.source)), groups = new Set(reasons.map((each) => each.group));
  const first = Math.min(...reasons.map((each) => each.first)), last = Math.max(...reasons.map((each) => each.last));
  return figures([
    { name: "Reasons", value: count(new Set(reasons.map((each) => each.reason)).size), tip: D.reason },
    { name: "Source topics", value: count(sources.size), tip: "Topics in which the records were, before they failed." },
    { name: "Groups", value: count(groups.size), tip: "Groups whose handlers failed." },
    { name: "First", value: reasons.length ? clock(first) : "–", tip: "When the oldest one failed." },
    { name: "Last", value: reasons.length ? clock(last) : "–", tip: "When the newest one failed." },
  ]);
}

function reasonsCard(view, reasons) {
  const { parameters } = view;
  const is = (row) => parameters.reason === row.reason && (parameters.source ?? "") === row.source && (parameters.group ?? "") === row.group;
  return card({ title: "By reason", key: "reasons", tip: D.reason },
    h("div", { class: "scroll-x tall", tabindex: 0 }, h("table", { class: "plain-table reasons" },
      h("thead", {}, h("tr", {}, h("th", {}, "Reason"), h("th", {}, "From"), h("th", {}, "Last"), h("th", { class: "right" }, "Count"))),
      h("tbody", {}, reasons.map((row) => h("tr", { key: `${row.source} ${row.group} ${row.reason}`, class: is(row) ? "chosen" : null },
        h("td", {}, h("a", { href: to("letters", { ...parameters, at: null, ...(is(row) ? { reason: null, source: null, group: null } : { reason: row.reason, source: row.source, group: row.group }) }), tip: row.message || null, "aria-current": is(row) ? "true" : null }, row.reason)),
        h("td", { tip: row.group ? `Group ${row.group}` : null }, row.source || h("span", { class: "muted" }, "unknown")), h("td", {}, whenOf(row.last)), h("td", { class: "right" }, count(row.count))))))));
}

function timesCard(view, times) {
  const { parameters } = view;
  const chosen = parameters.since ? Number(parameters.since) : null;
  return card({ title: "By time", key: "times", note: times?.bars.length ? `each bar ${duration(times.step)}` : null, tip: "When they failed. Choose a bar to see only its dead letters." },
    times?.bars.length ? barChart({ key: "bars", bars: times.bars, step: times.step, chosen, label: "Dead letters by the time of their failure", height: 200, hrefOf: (since, until) => to("letters", { ...parameters, at: null, ...(since === chosen ? { since: null, until: null } : { since, until }) }) }) : loading());
}

function asked(view) {
  return Object.fromEntries(["topic", ...FILTERS, "as"].map((name) => [name, view.parameters[name]]));
}

/** Read the list again if the filter or the number of dead letters has changed. The old one stays meanwhile. */
async function readList(view, total) {
  const { state } = view;
  const key = JSON.stringify([asked(view), total]);
  if (state.asked === key) return;
  if (state.filter !== JSON.stringify(asked(view))) Object.assign(state, { filter: JSON.stringify(asked(view)), plan: null, planProblem: null, chosen: new Set() });
  state.asked = key;
  try {
    const list = await view.get("list", asked(view));
    if (state.asked === key) Object.assign(state, { list, listProblem: null });
  } catch (error) {
    if (state.asked === key) Object.assign(state, { listProblem: { problem: error.problem ?? error.message, hint: error.hint } });
  }
  view.update();
}

const reread = (view) => Object.assign(view.state, { asked: null, letter: null });

async function readLetter(view) {
  const { parameters, state } = view;
  const key = `${parameters.at} ${parameters.as ?? ""}`;
  if (!parameters.at || state.letter?.asked === key) return;
  state.letter = { asked: key };
  try {
    state.letter.found = await view.get("show", { topic: parameters.topic, at: parameters.at, as: parameters.as });
  } catch (error) {
    state.letter.problem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  view.update();
}

function letterCard(view) {
  const { parameters, state } = view;
  const { found, problem } = state.letter ?? {};
  const close = h("a", { class: "icon-button", href: to("letters", { ...parameters, at: null }), "aria-label": "Close", tip: "Close" }, icon("close"));
  const title = `${parameters.topic} ${parameters.at}`;
  if (problem) return card({ title, key: "letter", actions: close }, notice(problem, "warn"));
  if (!found) return card({ title, key: "letter", actions: close }, loading("Reading the record…"));
  const { source } = found;
  const where = source.topic ? `${source.topic}-${source.partition ?? "?"} at ${source.offset ?? "?"}` : "unknown";
  return card({ title, key: "letter", actions: [button({ text: "Replay this one", key: "one", on: () => preview(view, [parameters.at]) }), close] },
    h("p", { class: "bad-text strong" }, found.error_type || found.reason, found.message && found.message !== found.reason ? h("span", { class: "soft" }, ` ${found.message}`) : null),
    pairs([
      ["Failed", whenOf(found.died_at), "The time of the last attempt."],
      ["Source", source.topic && source.offset !== null && view.pages.has("records") ? h("a", { href: to("records", { topic: source.topic, partition: source.partition, offset: source.offset }) }, where) : where, "Where the record was before it failed."],
      ["Group", found.group ? h("a", { href: to("group", { name: found.group }) }, found.group) : "unknown", "The group whose handler failed."],
      ["Attempts", found.attempts ?? "unknown", "Attempts before it was given up."],
      ["Replays", found.replayed ? "replayed" : found.returns ? `came back ${plural(found.returns, "time")}` : "never", "Whether it was sent to its source topic again, by the commits of replays."],
      ["Written by", found.style || "no headers that are known", "Whose headers it has."],
    ]),
    h("div", { class: "columns letter-parts" }, wholeRecord(found),
      found.traceback ? h("div", { class: "traceback", key: "traceback" }, h("h3", {}, "Traceback"), h("pre", { class: "block", block: true, tabindex: 0, "aria-label": "Traceback" }, found.traceback)) : null));
}

function listCard(view) {
  const { parameters, state } = view;
  const { list, chosen } = state;
  const active = FILTERS.filter((name) => parameters[name]);
  const letters = list?.letters ?? [];
  const some = chosen.size > 0;
  const go = { text: some ? `Preview a replay of ${count(chosen.size)} chosen…` : active.length ? "Preview a replay of these…" : "Preview a replay of all…", tone: "primary", key: "preview", disabled: !letters.length, on: () => preview(view, some ? [...chosen] : null) };
  return card({ title: "Dead letters", key: "list", note: list ? (list.matched > letters.length ? `the last ${count(letters.length)} of ${count(list.matched)}` : plural(list.matched, "record")) : null, actions: button(go) },
    h("div", { class: "filters" },
      h("input", { class: "field grow mono", type: "search", "data-filter": true, "aria-label": "Filter: a Python expression", placeholder: 'Filter ( / ), such as  value["amount"] > 100 and reason == "ValueError"', value: parameters.where ?? "", on: { change: (event) => view.go({ where: event.target.value.trim() || null }) } }),
      h("span", { class: "filters-chosen" }, active.filter((name) => name !== "where").map((name) => h("a", { key: name, class: "chip accent", href: to("letters", { ...parameters, [name]: null }), tip: "Remove this filter" }, `${name}: ${name === "since" || name === "until" ? clock(Number(parameters[name])) : parameters[name]}`, icon("close", 11))))),
    state.listProblem ? notice(state.listProblem, "warn") : null,
    list?.misses ? notice({ problem: `The filter failed for ${plural(list.misses, "record")}, which do not match.`, hint: list.example }, "warn") : null,
    !list && !state.listProblem ? loading() : !letters.length ? h("p", { class: "soft" }, "No dead letter matches.") :
      h("div", { class: "scroll-x", tabindex: 0 }, h("table", { class: "plain-table letters" },
        h("thead", {}, h("tr", {}, h("th", {}, h("input", { type: "checkbox", "aria-label": "Choose all that are listed", checked: some && letters.every((each) => chosen.has(each.at)), on: { change: (event) => choose(view, letters, event.target.checked) } })),
          ["Failed", "Reason", "Key", "Message", "At"].map((name) => h("th", { key: name }, name)), h("th", {}, ""))),
        h("tbody", {}, letters.map((each) => h("tr", { key: each.at, class: each.at === parameters.at ? "chosen" : null },
          h("td", {}, h("input", { type: "checkbox", "aria-label": `Choose ${each.at}`, checked: chosen.has(each.at), on: { change: (event) => choose(view, [each], event.target.checked) } })),
          h("td", {}, whenOf(each.died_at)), h("td", {}, h("a", { href: to("letters", { ...parameters, at: each.at }) }, each.reason)), h("td", {}, cellOf(each.key)),
          h("td", { class: "message", tip: each.message || null }, each.message), h("td", { class: "mono" }, each.at),
          h("td", {}, each.replayed ? chip("replayed", "good", "An earlier replay has sent it.") : each.returns ? chip(`came back ${plural(each.returns, "time")}`, "warn") : null)))))));
}

function choose(view, letters, is) {
  for (const each of letters) is ? view.state.chosen.add(each.at) : view.state.chosen.delete(each.at);
  view.update();
}

/** Show what a replay would do. `at` are chosen dead letters; without it, all that match the filter. */
async function preview(view, at) {
  const { state } = view;
  state.wanted = at ? { topic: view.parameters.topic, at } : asked(view);
  state.plan = state.planProblem = null;
  state.previewing = true;
  try {
    state.plan = await view.post("plan", { ...state.wanted, ...state.form });
  } catch (error) {
    state.planProblem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  state.previewing = false;
  view.update();
  requestAnimationFrame(() => document.querySelector("[aria-label='Replay']")?.scrollIntoView({ block: "nearest" }));
}
