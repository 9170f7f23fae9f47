// The apps that run on this machine, and those on others that report.

import { DEFINITIONS as D } from "../definitions.js";
import { h } from "../dom.js";
import { clock, plural } from "../format.js";
import { card, chip, nothing, to } from "../parts.js";

export default {
  title: () => "Live apps",
  topics: () => ["apps"],

  render(view) {
    const runs = [...view.topic("apps").rows.values()];
    const title = h("header", { class: "title", key: "title" }, h("h1", {}, "Live apps"), h("span", { class: "note", tip: D.apps, tabindex: 0 }, plural(runs.length, "run")));
    if (!runs.length) return [title, nothing({ title: "No app runs on this machine", text: "An app appears here as soon as it runs. Apps on other machines appear if they run with --report.", command: "penstock run shop:app" })];
    return [title, card({ key: "runs", class: "scroll-x" }, h("table", { class: "plain-table" },
      h("thead", {}, h("tr", {}, ["App", "Engine", "Machine", "Groups", "Since"].map((each) => h("th", { key: each }, each)))),
      h("tbody", {}, runs.map((run) => h("tr", { key: run.id },
        h("td", {}, h("a", { href: run.engine === "spark" ? to("spark") : to("app", { run: run.id }) }, `${run.app} (${run.pid})`), run.stopping ? [" ", chip("stopping", "warn")] : null),
        h("td", {}, run.engine), h("td", {}, run.here ? "this one" : run.host),
        h("td", {}, [...new Set(run.groups)].map((each, index) => [index ? ", " : null, h("a", { key: each, href: to("group", { name: each }) }, each)])), h("td", {}, clock(run.since)))))))];
  },
};
