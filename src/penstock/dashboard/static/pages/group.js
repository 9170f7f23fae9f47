// One group.

import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { count, duration, rate } from "../format.js";
import { icon } from "../icons.js";
import { chip, figures, to, toneOf } from "../parts.js";

const topicOf = (view) => `group?${new URLSearchParams({ name: view.parameters.name ?? "" })}`;

export default {
  title: (view) => view.parameters.name,
  topics: (view) => [topicOf(view)],
  same: (before, after) => before.name === after.name,

  render(view) {
    const rows = view.topic(topicOf(view)).rows;
    const group = rows.get("group");
    if (!group) return null;
    return [
      h("header", { class: "title", key: "title" },
        h("a", { class: "crumb", href: to("groups") }, icon("back", 14), "Groups"),
        h("h1", {}, group.name), chip(group.status, toneOf(group.status), group.reason || D.status), h("span", { class: "note" }, group.state)),
      figures([
        { name: "Lag", value: count(group.lag), tip: D.lag },
        { name: "Behind", value: duration(group.lag_seconds), tip: D.lag_seconds },
        { name: "In", value: rate(group.rate_in), tip: D.rate_in },
        { name: "Out", value: rate(group.rate_out), tip: D.rate_out },
        { name: "Drained in", value: group.lag === 0 ? "now" : duration(group.drain), tip: D.drain },
        { name: "Members", value: count(group.members), tip: D.members },
        { name: "Partitions", value: count(group.partitions), tip: D.partitions },
      ]),
    ];
  },
};
