// What runs on Spark, here and on machines that report: handlers with their slices, pipelines with their batches.

import { batchBars } from "../charts/batch_bars.js";
import { heatMap } from "../charts/heat_map.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h, shown } from "../dom.js";
import { clock, count, duration, plural, rate } from "../format.js";
import { button, card, chip, figures, nothing, to } from "../parts.js";

const TONES = { running: "good", restarting: "warn", stopping: "warn", stopped: "plain", ended: "plain", failed: "bad" };
const SAID = {
  running: "It takes slices or batches.", restarting: "A slice or the query failed, and starts again.", stopping: "It finishes what it has begun, and stops.",
  stopped: "It ended cleanly.", ended: "Its process has ended.", failed: "It ended with an error.",
};
const STEPS = [1, 10, 100, 1e3, 1e4, 1e5];

export default {
  title: () => "Spark",
  topics: () => ["spark"],

  render(view) {
    const rows = [...view.topic("spark").rows.values()];
    const runs = rows.filter((row) => row.app).sort((a, b) => Number(b.alive) - Number(a.alive) || b.since - a.since);
    const works = rows.filter((row) => row.state);
    const shownRuns = view.state.all ? runs : runs.filter((run) => run.alive || run.problem);
    const hidden = runs.length - shownRuns.length;
    return [
      h("header", { class: "title", key: "title" }, h("h1", {}, "Spark"), h("span", { class: "note", tip: D.spark, tabindex: 0 }, said(runs, works)),
        h("div", { class: "actions" }, hidden || view.state.all ? button({ key: "all", text: view.state.all ? "Hide what ended" : `Show ${plural(hidden, "ended run")}`, on: () => { view.state.all = !view.state.all; view.update(); } }) : null)),
      shownRuns.length ? shownRuns.map((run) => one(run, works.filter((work) => work.run === run.run))) : nothing({ title: "No app runs on Spark on this machine", text: "Handlers run on Spark unchanged, and pipelines need it. Apps on other machines appear if they run with --report. Start one with:", command: "penstock run shop:app --engine spark" }),
    ];
  },
};

function said(runs, works) {
  const alive = new Set(runs.filter((run) => run.alive).map((run) => run.run));
  const running = works.filter((work) => alive.has(work.run));
  return `${plural(alive.size, "app")} · ${plural(running.filter((each) => each.is_handler).length, "handler")} · ${plural(running.filter((each) => !each.is_handler).length, "pipeline output")}`;
}

function one(run, works) {
  return h("section", { class: "spark-run", key: run.run, "aria-label": run.app },
    h("header", { class: "spark-head" }, h("h2", {}, run.app), run.shortened ? chip("shortened", "plain", D.shortened) : null, run.alive ? chip(run.stopping ? "stopping" : "running", run.stopping ? "warn" : "good") : chip(run.problem ? "failed" : "ended", run.problem ? "bad" : "plain"),
      h("span", { class: "note" }, `process ${run.pid}${run.host ? ` on ${shown(run.host)}` : ""} · ${run.alive ? "since" : "started"} ${clock(run.since)}${run.ended ? ` · ended ${clock(run.ended)}` : ""}${run.master ? ` · ${shown(run.master)}` : ""}`),
      h("div", { class: "actions" }, run.ui ? h("a", { class: "button", href: run.ui, target: "_blank", rel: "noopener noreferrer", tip: `${shown(run.application)}: jobs, stages and executors` }, "Spark's own UI ↗") : run.alive && run.master ? h("span", { class: "note", tip: "Start the app with --spark-conf spark.ui.enabled=true to have it.", tabindex: 0 }, "Spark's own UI is off") : null)),
    run.problem ? h("div", { class: "notice bad", key: "problem" }, h("strong", {}, run.problem)) : null,
    works.length ? works.map(workCard) : h("p", { class: "soft", key: "none" }, run.alive ? "Spark starts: this takes some seconds." : "It recorded no handler or pipeline."));
}

function workCard(work) {
  const word = work.is_handler ? "slice" : "batch";
  const failed = Object.entries(work.failed_rows);
  return card({
    title: work.name, key: `${work.run} ${work.group} ${work.name}`,
    note: [work.is_handler ? "handler" : "pipeline", h("span", { key: "of" }, " · group "), h("a", { key: "group", href: to("group", { name: work.group }) }, work.group), ` · ${work.topics.join(", ")}`],
    actions: chip(work.state, TONES[work.state], SAID[work.state]),
  },
    figures([
      { name: "Lag", value: count(work.lag), tip: work.is_handler ? D.lag : D.spark_lag },
      { name: "Rate", value: rate(work.rate), tip: D.spark_rate },
      { name: work.is_handler ? "Last slices" : "Last batch", value: duration(work.seconds), extra: work.last_at ? clock(work.last_at) : null, tip: work.is_handler ? D.slices : D.batches },
      { name: "Read", value: count(work.read), tip: D.run_read },
      { name: "Written", value: count(work.written), tip: D.run_written },
      { name: "Dead letters", value: count(work.dead_lettered), tone: work.dead_lettered ? "warn" : null, tip: D.run_dead },
      { name: "Restarts", value: count(work.restarts), tone: work.restarts ? "warn" : null, extra: work.restarted_at ? clock(work.restarted_at) : null, tip: D.restarts },
      work.next_size ? { name: "Next batch", value: `≤ ${count(work.next_size)}`, tip: D.next_size } : null,
      work.late_rows ? { name: "Late rows", value: count(work.late_rows), tone: "warn", tip: D.late_rows } : null,
    ]),
    work.problem && work.state !== "stopped" ? h("p", { class: work.state === "failed" ? "bad-text" : "warn-text", key: "problem" }, work.problem) : null,
    failed.length ? h("p", { class: "warn-text", key: "expectations" }, "Expectations not met: ", failed.map(([name, rows]) => `${shown(name)} by ${plural(rows, "row")}`).join(", ")) : null,
    h("div", { class: "spark-pictures" },
      h("div", { key: "bars" }, h("h3", { tip: work.is_handler ? D.slices : D.batches, tabindex: 0, class: "defined" }, work.is_handler ? "Latest slices" : "Latest batches"),
        work.batches.length ? batchBars({ key: "bars", batches: work.batches, word }) : h("p", { class: "soft" }, work.state === "running" ? "None has finished yet." : "None finished.")),
      work.partitions.length ? h("div", { key: "heat" }, h("h3", { tip: D.lag, tabindex: 0, class: "defined" }, "Lag by partition"),
        heatMap({ key: "cells", steps: STEPS, label: `Lag of ${plural(work.partitions.length, "partition")}`, width: 420, cells: work.partitions.map(([topic, partition, position, lag]) => ({ key: `${topic}/${partition}`, topic, partition, value: lag, tip: `${shown(topic)}-${partition}\n${plural(lag, "record")} behind, at ${count(position)}`, href: to("group", { name: work.group, at: `${topic}/${partition}` }) })) })) : null));
}
