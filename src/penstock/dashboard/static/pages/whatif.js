// What an assignor would do to a group: other members, other partitions, another assignor; before and after.

import { matrix } from "../charts/matrix.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h, shown } from "../dom.js";
import { clock, count, duration, plural } from "../format.js";
import { icon } from "../icons.js";
import { button, card, choice, chip, commandLine, figures, loading, notice, nothing, to } from "../parts.js";
import { makeTable, renderTable } from "../table.js";

const TOPIC = "plannable";
const MOST_CHIPS = 60;
const WAIT_MS = 180;
const WHY = {
  new: ["it had no owner", "Nobody owned the partition before."],
  "owner left": ["its owner left", "Its owner is not a member any more."],
  unsubscribed: ["its owner no longer subscribes", "Its owner does not read the topic any more."],
  nearer: ["a nearer rack", "Its new owner is in the rack of a replica, the old one is not."],
  balance: ["balance", "Its owner had more than its share."],
  exchange: ["exchange", "Its owner gets other partitions instead: this assignor does not keep the previous assignment, or balances something else."],
};

/** The changes that the address names: { assignor, by, add, gone: [labels], parts: { topic: count } }. */
function wishes({ assignor, by, add, gone, parts }) {
  return {
    assignor: assignor ?? null, by: by ?? "lag", add: Math.max(0, Number.parseInt(add ?? "0", 10) || 0), gone: (gone ?? "").split("\n").filter(Boolean),
    parts: Object.fromEntries((parts ?? "").split("\n").filter(Boolean).map((each) => [each.slice(0, each.lastIndexOf("=")), Number(each.slice(each.lastIndexOf("=") + 1))])),
  };
}

export default {
  title: (view) => (view.parameters.group ? `What if: ${shown(view.parameters.group)}` : "What if"),
  topics: () => [TOPIC],
  same: () => true,

  start(view) {
    Object.assign(view.state, { table: makeTable({ columns: MOVES, keyOf: (row) => `${row.topic}/${row.partition}`, sortBy: "key", descending: false, update: view.update, label: "Moves" }), asked: null, answer: null, problem: null });
  },

  close: (view) => clearTimeout(view.state.timer),

  render(view) {
    const { parameters, state } = view;
    if (!parameters.group) return [heading(view), nothing({ title: "Choose a group", text: "See which partitions would move if you added members or partitions, or used another assignor. Nothing is changed. The same in a terminal:", command: "penstock plan shipping --members +2" })];
    const asked = JSON.stringify([parameters.group, wishes(parameters)]);
    if (state.asked !== asked) soon(view, asked);
    const answer = state.answerFor === parameters.group ? state.answer : null;
    return [
      heading(view, answer),
      state.problem ? notice(state.problem) : null,
      answer ? controls(view, answer) : state.problem ? h("p", { key: "over" }, h("a", { href: to("whatif", { group: parameters.group }) }, "Start over with the group as it is")) : loading("Looking at the group…"),
      answer?.empty ? nothing({ title: "The group has no members now", text: "Add some above to plan its first assignment." }) : null,
      answer?.plan ? results(view, answer) : null,
    ];
  },
};

/** Ask for a plan when the last change is a moment old; keep the last plan on the screen meanwhile. */
function soon(view, asked) {
  view.state.asked = asked;
  clearTimeout(view.state.timer);
  view.state.timer = setTimeout(() => ask(view, asked), view.state.answer ? WAIT_MS : 0);
}

async function ask(view, asked, again = false) {
  const { group } = view.parameters, wish = wishes(view.parameters);
  const members = [...wish.gone.map((each) => `-${each}`), ...(wish.add ? [`+${wish.add}`] : [])];
  try {
    const answer = await view.post("plan", { name: group, assignor: wish.assignor, by: wish.by, members, partitions: wish.parts, again });
    if (view.state.asked !== asked) return;
    Object.assign(view.state, { answer, answerFor: group, problem: null });
    if (!answer.empty && !wish.gone.length && !wish.add) view.state.members = null;
  } catch (error) {
    if (view.state.asked !== asked) return;
    view.state.problem = { problem: error.problem ?? error.message, hint: error.hint };
    if (error.problem === undefined) view.state.timer = setTimeout(() => ask(view, asked), 3000);
  }
  view.update();
}

function heading(view, answer) {
  const { group } = view.parameters;
  const names = [...view.topic(TOPIC).rows.values()].map((row) => row.group).filter(Boolean);
  return h("header", { class: "title", key: "title" },
    group ? h("a", { class: "crumb", key: "crumb", href: to("group", { name: group }) }, icon("back", 14), group) : null,
    h("h1", {}, "What if"), answer ? h("span", { class: "note", tip: D.planned, tabindex: 0 }, `nothing is changed · the group as at ${clock(answer.at)}`) : null,
    h("div", { class: "actions" },
      answer ? button({ text: "Look again", icon: "resume", tip: "Read the group again: its members, lag and rates.", on: () => ask(view, view.state.asked, true) }) : null,
      names.length ? h("select", { class: "field", key: "groups", "aria-label": "Group", value: group ?? "", on: { change: (event) => { location.hash = to("whatif", { group: event.target.value }); } } },
        h("option", { value: "", disabled: true }, "Choose a group"), [...new Set([...(group ? [group] : []), ...names])].sort().map((each) => h("option", { key: each, value: each }, each))) : null));
}

function controls(view, answer) {
  const wish = wishes(view.parameters);
  const before = answer.plan ? Object.keys(answer.plan.before.partitions) : [];
  const label = (id) => answer.labels?.[id] ?? id;
  const stay = before.map(label).filter((each) => !wish.gone.includes(each));
  const setGone = (gone) => view.go({ gone: gone.join("\n") || null });
  const fewer = () => (wish.add ? view.go({ add: wish.add - 1 || null }) : stay.length > 1 && setGone([...wish.gone, stay.at(-1)]));
  return card({ title: "Change", key: "change", tip: D.planned, actions: Object.keys(view.parameters).length > 1 ? h("a", { key: "reset", href: to("whatif", { group: view.parameters.group }) }, "Start over") : null },
    h("div", { class: "wishes" },
      h("div", { class: "wish", key: "members" }, h("span", { class: "wish-name", tip: D.members, tabindex: 0 }, "Members"),
        h("div", { class: "stepper" }, button({ text: "−", label: "One member less", disabled: stay.length + wish.add <= 1, on: fewer }), h("output", {}, count(stay.length + wish.add)), button({ text: "+", label: "One member more", on: () => view.go({ add: wish.add + 1 }) })),
        h("div", { class: "people" },
          before.slice(0, MOST_CHIPS).map((id) => member(label(id), wish.gone.includes(label(id)), () => setGone(wish.gone.includes(label(id)) ? wish.gone.filter((each) => each !== label(id)) : [...wish.gone, label(id)]))),
          before.length > MOST_CHIPS ? h("span", { class: "note" }, `and ${count(before.length - MOST_CHIPS)} more`) : null,
          wish.add ? chip(`+ ${plural(wish.add, "new member")}`, "good") : null)),
      h("div", { class: "wish", key: "topics" }, h("span", { class: "wish-name", tip: D.planned_partitions, tabindex: 0 }, "Partitions"),
        h("div", { class: "people" }, answer.topics.map((topic) => h("label", { key: topic.name, class: "topic-wish" }, h("span", { class: "ellipsis", tip: topic.name }, topic.name),
          h("input", { class: `field ${topic.after !== topic.before ? "changed" : ""}`, type: "number", min: topic.before, max: 20000, value: String(wish.parts[topic.name] ?? topic.before), on: { change: (event) => resize(view, wish, topic, event.target) } }))))),
      h("div", { class: "wish", key: "assignor" }, h("span", { class: "wish-name", tip: D.assignor, tabindex: 0 }, "Assignor"),
        h("select", { class: "field", "aria-label": "Assignor", value: wish.assignor ?? answer.own ?? "", on: { change: (event) => view.go({ assignor: event.target.value === answer.own ? null : event.target.value }) } },
          (view.topic(TOPIC).rows.get("assignors")?.assignors ?? [answer.own]).filter(Boolean).map((each) => h("option", { key: each, value: each }, each === answer.own ? `${each} (as now)` : each))),
        (wish.assignor ?? answer.own) === "lag-balanced" ? choice({ options: [["lag", "by lag"], ["rate", "by rate"], ["cost", "by cost"]], value: wish.by, label: "What it balances", on: (by) => view.go({ by: by === "lag" ? null : by }) }) : null)),
    answer.command ? commandLine(answer.command) : null);
}

function member(name, gone, on) {
  return h("button", { key: name, type: "button", class: `person ${gone ? "gone" : ""}`, "aria-pressed": String(gone), tip: gone ? "It leaves in this plan. Choose it to let it stay." : "Let it leave in this plan.", on: { click: on } }, name, icon(gone ? "resume" : "close", 12));
}

function resize(view, wish, topic, field) {
  const parts = { ...wish.parts, [topic.name]: Math.max(topic.before, Number.parseInt(field.value, 10) || topic.before) };
  field.value = String(parts[topic.name]);
  if (parts[topic.name] === topic.before) delete parts[topic.name];
  view.go({ parts: Object.entries(parts).map(([name, number]) => `${name}=${number}`).join("\n") || null });
}

function results(view, answer) {
  const { plan } = answer;
  const between = plan.moves.filter((each) => each.from !== null).length;
  return [
    figures([
      { name: "Moves", value: count(plan.moves.length), tip: D.moves, extra: plan.moves.length > between ? `${count(plan.moves.length - between)} had no owner` : null },
      { name: "Beyond need", value: count(plan.moves_beyond_need), tone: plan.moves_beyond_need ? "warn" : null, tip: D.beyond },
      { name: "Partitions each", value: range(plan.after.spread), tip: D.spread, extra: `before ${range(plan.before.spread)}` },
      { name: "Lag each", value: range(plan.after.lag), tip: D.lag_spread, extra: `before ${range(plan.before.lag)}` },
      plan.after.far || plan.before.far ? { name: "Across racks", value: count(plan.after.far), tip: D.far, extra: `before ${count(plan.before.far)}` } : null,
      { name: "Eager stops", value: stops(plan.eager), tip: D.eager },
      { name: "Cooperative stops", value: stops(plan.cooperative), tip: D.cooperative },
    ]),
    notes(answer),
    sides(answer),
    others(view, answer),
    plan.moves.length ? card({ title: "Moves", key: "moves", class: "flush", note: plural(plan.moves.length, "partition") }, renderTable(view.state.table, plan.moves.map((each) => ({ ...each, source: each.from === null ? null : answer.labels[each.from] ?? each.from, target: answer.labels[each.to] ?? each.to })))) : card({ title: "Moves", key: "moves" }, h("p", { class: "soft" }, "Nothing would move.")),
  ];
}

const range = (spread) => (spread.least === spread.most ? count(spread.least) : `${count(spread.least)} – ${count(spread.most)}`);
const stops = (pause) => (pause.partitions ? `${count(pause.partitions)} for ${duration(pause.seconds)}` : "none");

function notes(answer) {
  const said = [...answer.notes, ...(answer.plan.estimate ? [`This is an estimate: ${answer.plan.estimate}.`] : [])];
  return said.length ? h("div", { class: "notice warn", key: "notes" }, said.map((each) => h("span", { key: each }, each))) : null;
}

function sides(answer) {
  const { plan, labels } = answer;
  const ids = [...new Set([...Object.keys(plan.before.partitions), ...Object.keys(plan.after.partitions)])];
  const listed = (side, id) => Object.entries(side.partitions[id] ?? {}).flatMap(([topic, numbers]) => numbers.map((number) => [topic, number]));
  const why = new Map(plan.moves.map((each) => [`${each.topic}/${each.partition}`, `from ${shown(each.from === null ? "nobody" : labels[each.from] ?? each.from)}: ${WHY[each.why]?.[0] ?? each.why}`]));
  const lines = (side) => ids.map((id) => {
    const partitions = listed(side, id);
    return { id, name: labels[id] ?? id, note: id in side.partitions ? `lag ${count(side.lags[id])}` : side === plan.before ? "not a member yet" : "has left", partitions, target: partitions };
  });
  const topics = (size) => answer.topics.filter((each) => each[size]).map((each) => [each.name, each.after]);
  const assumed = innerWidth < 1100 ? (innerWidth < 720 ? 320 : 640) : 480;
  return h("div", { class: "columns sides", key: "sides" },
    card({ title: "Before", key: "before", note: `${plural(Object.keys(plan.before.partitions).length, "member")}, ${plural(answer.topics.reduce((sum, each) => sum + each.before, 0), "partition")}` }, h("div", { class: "tall" }, matrix({ key: "before", members: lines(plan.before), topics: topics("before"), label: "Owners before", assumed }))),
    card({ title: "After", key: "after", note: `${plural(Object.keys(plan.after.partitions).length, "member")}, ${plural(answer.topics.reduce((sum, each) => sum + each.after, 0), "partition")} · dots mark what moved`, tip: "Point at a cell to see why it moved." }, h("div", { class: "tall" }, matrix({ key: "after", members: lines(plan.after), topics: topics("after"), label: "Owners after", assumed, moved: why }))));
}

function others(view, answer) {
  if (answer.others.length < 2) return null;
  const fewest = Math.min(...answer.others.map((each) => each.moves));
  return card({ title: "Other assignors", key: "others", tip: "The same change with each assignor that Penstock has." },
    h("div", { class: "scroll-x" }, h("table", { class: "plain-table hover" },
      h("thead", {}, h("tr", {}, [["Assignor", D.assignor], ["Moves", D.moves], ["Beyond need", D.beyond], ["Partitions each", D.spread], ["Lag each", D.lag_spread], ["Eager stops", D.eager], ["Cooperative stops", D.cooperative]].map(([name, tip], index) => h("th", { key: name, tip, class: index ? "right" : null }, name)))),
      h("tbody", {}, answer.others.map((each) => h("tr", { key: each.assignor, class: each.assignor === answer.plan.assignor ? "chosen" : null },
        h("td", {}, h("a", { href: to("whatif", { ...view.parameters, assignor: each.assignor === answer.own ? null : each.assignor }) }, each.assignor), each.assignor === answer.own ? h("span", { class: "note" }, " as now") : null),
        h("td", { class: `right ${each.moves === fewest ? "good-text" : ""}` }, count(each.moves)), h("td", { class: "right" }, count(each.beyond)), h("td", { class: "right" }, range(each.spread)), h("td", { class: "right" }, range(each.lag)), h("td", { class: "right" }, stops(each.eager)), h("td", { class: "right" }, stops(each.cooperative))))))));
}

const MOVES = [
  { name: "key", title: "Partition", width: "minmax(110px, 1.2fr)", value: (row) => `${row.topic} ${String(row.partition).padStart(6, "0")}`, cell: (row) => `${row.topic}-${row.partition}` },
  { name: "from", title: "From", width: "minmax(90px, 1fr)", value: (row) => row.source, cell: (row) => row.source ?? h("span", { class: "muted" }, "nobody") },
  { name: "to", title: "To", width: "minmax(90px, 1fr)", value: (row) => row.target, cell: (row) => row.target },
  { name: "why", title: "Why", tip: D.why_moved, width: "minmax(90px, 1fr)", value: (row) => row.why, cell: (row) => h("span", { class: "soft", tip: WHY[row.why]?.[1] }, WHY[row.why]?.[0] ?? row.why) },
];
