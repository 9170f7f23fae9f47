// The rebalances of a group: a list, and one of them as a timeline with its votes, its gaps and its moves.

import { timeline } from "../charts/timeline.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h, shown } from "../dom.js";
import { clock, count, duration, plural } from "../format.js";
import { icon } from "../icons.js";
import { card, chip, figures, loading, nothing, to } from "../parts.js";
import { makeTable, renderTable } from "../table.js";

const GAPS_DRAWN = 24;
const LONG_GAP = 5;
const PHASES = {
  "coordinator found": { colour: "--series-6", tip: "The member asked which broker coordinates the group." },
  joined: { colour: "--series-1", tip: "The member waited until the coordinator had heard from all members." },
  rejoined: { colour: "--series-1", tip: "The member waited until the coordinator had heard from all members." },
  assigned: { colour: "--series-4", tip: "The leader divided the partitions." },
  synced: { colour: "--series-2", tip: "The member waited for its assignment." },
  "given up": { colour: "--series-5", tip: "The member finished the records in progress, committed, and returned partitions." },
  "taken over": { colour: "--series-3", tip: "The member read the commit points of its new partitions and began to fetch." },
};
const WHY = {
  new: ["new", "No member that reports owned it before."],
  "owner left": ["its owner left", "Its owner left the group."],
  "owner lost it": ["its owner lost it", "The coordinator removed its owner, which could not commit any more."],
  balance: ["balance", "Its owner had more than its share."],
  exchange: ["exchange", "Its owner got other partitions instead, or no leader reported."],
  "got back": ["it got it back", "Its owner returned it, and got it again: the assignor divided the partitions once more."],
  "on its way": ["on its way", "No member that reports has got it yet."],
};

const listOf = (view) => (view.parameters.group ? `rebalances?${new URLSearchParams({ group: view.parameters.group })}` : "rebalances");
const chosenOf = (view) => view.parameters.at ?? view.state.newest ?? null;

function oneOf(view) {
  const key = chosenOf(view);
  return key === null ? null : `rebalance?${new URLSearchParams({ group: key.slice(0, key.lastIndexOf(" ")), at: key })}`;
}

export default {
  title: (view) => (view.parameters.group ? `Rebalances of ${shown(view.parameters.group)}` : "Rebalances"),
  topics: (view) => [listOf(view), oneOf(view)].filter(Boolean),
  same: (before, after) => before.group === after.group,

  start(view) {
    view.state.table = makeTable({ columns: MOVES, keyOf: (row) => `${row.topic}/${row.partition}/${row.source}`, sortBy: "seconds", update: view.update, label: "Moved partitions" });
  },

  key(event, view) {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (!step || event.target.closest(".table")) return;
    const keys = rowsOf(view).map((row) => row.key);
    const next = keys[keys.indexOf(chosenOf(view)) + step];
    if (next) { view.go({ at: next }); event.preventDefault(); }
  },

  render(view) {
    const rows = rowsOf(view);
    const newest = rows[0]?.key ?? null;
    if (newest !== view.state.newest) {
      view.state.newest = newest;
      if (!view.parameters.at) view.refollow();
    }
    if (!rows.length) return [heading(view, rows), none(view)];
    const one = view.topic(oneOf(view)).rows;
    return [
      heading(view, rows),
      h("div", { class: `master ${view.parameters.at ? "opened" : ""}`, key: "master" },
        list(view, rows),
        h("div", { class: "detail", key: "detail" }, one.has("rebalance") ? detail(view, one.get("rebalance"), one.get("moves")?.moves ?? []) : one.has("gone") ? nothing({ title: "This rebalance is no longer recorded", text: "Each run keeps its latest rebalances, for a week." }) : loading("Reading the rebalance…"))),
    ];
  },
};

function rowsOf(view) {
  return [...view.topic(listOf(view)).rows.values()].sort((a, b) => b.began - a.began);
}

function none(view) {
  return nothing({
    title: view.parameters.group ? "No rebalance of this group is recorded here" : "No rebalance is recorded yet",
    text: "Kafka keeps no history of rebalances. Each `penstock run` on this machine records those of its groups for a week, and so does each one with --report on others. Start a second one and watch them share the partitions:",
    command: "penstock run shop:app",
  });
}

function heading(view, rows) {
  const group = view.parameters.group;
  const groups = [...new Set([group, ...rows.map((row) => row.group)].filter(Boolean))].sort();
  return h("header", { class: "title", key: "title" },
    group ? h("a", { class: "crumb", key: "crumb", href: to("group", { name: group }) }, icon("back", 14), group) : null,
    h("h1", {}, "Rebalances"), h("span", { class: "note", tip: D.recorded, tabindex: 0 }, `${plural(rows.length, "rebalance")} recorded`),
    h("div", { class: "actions" },
      group ? h("a", { key: "all", class: "button", href: to("rebalances") }, "All groups") : groups.length > 1 ? h("select", { class: "field", key: "group", "aria-label": "Group", value: "", on: { change: (event) => view.go({ group: event.target.value || null, at: null }) } }, h("option", { value: "" }, "All groups"), groups.map((each) => h("option", { key: each, value: each }, each))) : null));
}

function list(view, rows) {
  const chosen = chosenOf(view);
  return h("nav", { class: "rounds card", key: "rounds", "aria-label": "Rebalances, newest first" }, rows.map((row) =>
    h("a", { key: row.key, class: "round", href: to("rebalances", { group: view.parameters.group, at: row.key }), "aria-current": row.key === chosen ? "true" : null },
      h("span", { class: "round-top" }, h("span", { class: "strong ellipsis" }, view.parameters.group ? clock(row.began) : row.group), h("span", { class: "note" }, view.parameters.group ? generation(row) : clock(row.began))),
      h("span", { class: "ellipsis soft", key: "why" }, row.reason ?? "reason not known"),
      h("span", { class: "round-facts" },
        row.lost ? chip(`${count(row.lost)} lost`, "bad") : null,
        chip(row.moved ? `${count(row.moved)} moved` : "nothing moved", "plain"),
        row.gap === null ? null : chip(`gap ${duration(row.gap)}`, row.gap >= LONG_GAP ? "warn" : "plain"),
        h("span", { class: "note" }, duration(row.seconds))))));
}

function generation(row) {
  const [first, last] = [row.generations[0], row.generations.at(-1)];
  return first === undefined ? "" : first === last ? `generation ${first}` : `generations ${first} – ${last}`;
}

function detail(view, its, moves) {
  const gaps = moves.filter((each) => each.seconds !== null);
  const longest = gaps.length ? Math.max(...gaps.map((each) => each.seconds)) : null;
  return [
    h("div", { class: "detail-head", key: "head" }, h("a", { class: "crumb back", href: to("rebalances", { group: view.parameters.group }) }, icon("back", 14), "All"),
      h("h2", {}, its.reason ? shown(its.reason) : "Reason not known"), h("span", { class: "note" }, clock(its.began), " · ", h("a", { href: to("group", { name: its.group }) }, its.group), view.parameters.at ? null : " · newest")),
    figures([
      { name: "Took", value: duration(its.ended - its.began), tip: D.rebalance_seconds },
      { name: "Moved", value: count(moves.length), tip: D.moved },
      { name: "Longest gap", value: duration(longest), tone: longest >= LONG_GAP ? "warn" : null, tip: D.gap },
      { name: "Members", value: count(its.voters?.length ?? its.reports.length), tip: D.members },
      { name: "Generation", value: its.generations.length > 1 ? `${its.generations[0]} – ${its.generations.at(-1)}` : count(its.generations[0]), tip: D.generation },
      { name: "Assignor", value: its.strategy ?? "–", tone: "words", tip: D.assignor },
    ]),
    phases(its, gaps, moves),
    members(its),
    moves.length ? card({ title: "What moved, and why", key: "moves", class: "flush", note: plural(moves.length, "partition"), tip: D.moved }, renderTable(view.state.table, moves)) : card({ title: "What moved, and why", key: "moves" }, h("p", { class: "soft" }, "No partition changed its owner.")),
    its.coordinator ? h("p", { class: "note", key: "coordinator" }, "Coordinator: ", its.coordinator) : null,
  ];
}

function phases(its, gaps, moves) {
  const lanes = its.reports.map((lane) => ({
    name: lane.member,
    tip: `${shown(lane.member)}\n${lane.reports.map((each) => `${each.membership}${each.reason ? `: ${shown(each.reason)}` : ""}`).join("\n")}`,
    bars: lane.reports.flatMap(bars),
    marks: lane.reports.flatMap(marks),
  }));
  const open = moves.filter((each) => each.free_at !== null && each.taken_at === null);
  const until = Math.max(its.ended, ...gaps.map((each) => each.taken_at), its.began + 0.01);
  const drawn = [...gaps.filter((each) => each.seconds > 0).sort((a, b) => b.seconds - a.seconds), ...open].slice(0, GAPS_DRAWN);
  const names = [...new Set(its.reports.flatMap((lane) => lane.reports.flatMap((each) => each.phases.map(([name]) => name))))];
  const left = gaps.length + open.length - drawn.length;
  return card({ title: "Timeline", key: "timeline", tip: D.timeline },
    timeline({
      key: "picture", from: its.began, until, lanes, narrow: innerWidth < 720, label: `Phases of ${plural(lanes.length, "member")}, ${plural(gaps.length, "partition")} without an owner for a time`,
      gaps: drawn.map((each) => ({ name: `${each.topic}-${each.partition}`, from: each.free_at, until: each.taken_at ?? until, open: each.taken_at === null, text: each.taken_at === null ? "on its way" : duration(each.seconds), tip: `${shown(each.topic)}-${each.partition}\n${shown(each.source ?? "nobody")} → ${shown(each.target ?? "not known yet")}\nwithout an owner for ${each.taken_at === null ? "an unknown time" : duration(each.seconds)}` })),
    }),
    left > 0 ? h("p", { class: "note" }, `${plural(left, "more partition")} had shorter gaps: see below.`) : null,
    h("div", { class: "legend" }, names.map((name) => h("span", { key: name, tip: PHASES[name]?.tip, tabindex: 0 }, h("i", { class: `phase${PHASES[name]?.colour ?? "--series-6"}` }), name))));
}

function bars(report) {
  let from = report.began;
  return report.phases.map(([name, seconds]) => {
    const bar = { from, until: from + seconds, colour: PHASES[name]?.colour ?? "--series-6", text: `${name} ${duration(seconds)}`, tip: `${name}: ${duration(seconds)}\n${PHASES[name]?.tip ?? ""}` };
    from += seconds;
    return bar;
  });
}

function marks(report) {
  return [
    report.revoked && { at: report.revoked_at, colour: "--warn", tip: `returned ${plural(report.revoked, "partition")}` },
    report.lost && { at: report.lost_at, colour: "--bad", tip: `lost ${plural(report.lost, "partition")}` },
    report.assigned && { at: report.assigned_at, colour: "--good", tip: `got ${plural(report.assigned, "partition")}` },
  ].filter((each) => each && each.at !== null);
}

function members(its) {
  if (!its.voters) {
    return card({ title: "Members", key: "members", tip: D.votes },
      h("p", { class: "soft" }, its.reports.length === 1 ? "One member reported this rebalance. " : `${its.reports.length} members reported this rebalance. `, "Only a leader with an assignor of Penstock sees the votes and shares of all members."));
  }
  return card({ title: "Members and votes", key: "members", note: plural(its.voters.length, "member"), tip: D.votes },
    h("div", { class: "scroll-x tall" }, h("table", { class: "plain-table" },
      h("thead", {}, h("tr", {}, h("th", {}, "Member"), h("th", {}, "Rack"), h("th", { tip: D.votes }, "Votes"), h("th", { class: "right" }, "Had"), h("th", { class: "right" }, "Gets"))),
      h("tbody", {}, its.voters.map((each) => h("tr", { key: each.id },
        h("td", { tip: each.id }, each.static_id ?? each.name ?? each.id, " ", each.id === its.leader ? chip("leader", "accent", D.leader) : null, its.joined.includes(each.id) ? chip("joined", "good") : null),
        h("td", {}, each.rack ?? "–"), h("td", {}, each.votes?.join(", ") ?? "–"), h("td", { class: "right" }, count(each.owned)), h("td", { class: `right ${each.assigned > each.owned ? "good-text" : each.assigned < each.owned ? "warn-text" : ""}` }, count(each.assigned)))),
      its.left.map((each) => h("tr", { key: `left ${each}` }, h("td", { class: "muted" }, each, " ", chip("left", "bad")), h("td", {}, "–"), h("td", {}, "–"), h("td", { class: "right muted" }, "–"), h("td", { class: "right muted" }, "0")))))));
}

const who = (name) => name ?? h("span", { class: "muted" }, "–");

const MOVES = [
  { name: "key", title: "Partition", width: "minmax(110px, 1.2fr)", value: (row) => `${row.topic} ${String(row.partition).padStart(6, "0")}`, cell: (row) => `${row.topic}-${row.partition}` },
  { name: "source", title: "From", tip: "The member that owned it before.", width: "minmax(90px, 1fr)", value: (row) => row.source, cell: (row) => who(row.source) },
  { name: "target", title: "To", tip: "The member that owns it now.", width: "minmax(90px, 1fr)", value: (row) => row.target, cell: (row) => who(row.target) },
  { name: "seconds", title: "Gap", tip: D.gap, width: "74px", right: true, value: (row) => row.seconds, cell: (row) => duration(row.seconds) },
  { name: "why", title: "Why", tip: D.why_moved, width: "minmax(76px, 0.9fr)", value: (row) => row.why, cell: (row) => h("span", { class: "soft", tip: WHY[row.why]?.[1] }, WHY[row.why]?.[0] ?? row.why) },
];
