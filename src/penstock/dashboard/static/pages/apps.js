// The apps that run on this machine.

import { h } from "../dom.js";
import { clock } from "../format.js";
import { nothing, to } from "../parts.js";

export default {
  title: () => "Live apps",
  topics: () => ["apps"],

  render(view) {
    const runs = [...view.topic("apps").rows.values()];
    const title = h("header", { class: "title", key: "title" }, h("h1", {}, "Live apps"));
    if (!runs.length) return [title, nothing({ title: "No app runs on this machine", text: "An app appears here as soon as it runs:", command: "penstock run shop:app" })];
    return [title, h("table", { class: "plain-table", key: "runs" },
      h("thead", {}, h("tr", {}, ["App", "Engine", "Groups", "Since"].map((each) => h("th", {}, each)))),
      h("tbody", {}, runs.map((run) => h("tr", { key: run.pid }, h("td", {}, `${run.app} (${run.pid})`), h("td", {}, run.engine), h("td", {}, run.groups.map((each) => h("a", { key: each, href: to("group", { name: each }) }, each))), h("td", {}, clock(run.since))))))];
  },
};
