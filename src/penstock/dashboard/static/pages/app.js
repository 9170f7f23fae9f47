// One running app: workers, lanes, retries, errors, and how much is in flight.

import { latencyChart } from "../charts/latency_chart.js";
import { lineChart } from "../charts/line_chart.js";
import { DEFINITIONS as D } from "../definitions.js";
import { h, shown } from "../dom.js";
import { bytes, clock, count, duration, percent, plural, rate, short } from "../format.js";
import { icon } from "../icons.js";
import { card, chip, choice, figures, loading, nothing, notice, to } from "../parts.js";
import { cellOf } from "../record_parts.js";
import { controls } from "./app_control.js";

const TONES = { running: "good", stopping: "warn", stopped: "plain", failed: "bad" };
const STEPS = [0.01, 0.1, 1, 10, 60, 600]; // seconds at a record: the colours of workers
const LONG_SECONDS = 10;
const MOST_SLOTS = 400;

const topicOf = (view) => `app?${new URLSearchParams({ run: view.parameters.run ?? "" })}`;
const placeOf = (each) => `${each.topic}-${each.partition}@${each.offset}`;
const recordLink = (view, each) => h("a", { href: to("records", { topic: each.topic, partition: each.partition, offset: each.offset, at: `${each.partition}:${each.offset}` }), class: "mono" }, placeOf(each));

export default {
  title: (view) => shown(view.topic(topicOf(view)).rows.get("run")?.app ?? "Live app"),
  topics: (view) => [topicOf(view)],
  same: (before, after) => before.run === after.run,

  render(view) {
    const rows = view.topic(topicOf(view)).rows;
    const run = rows.get("run");
    if (!run) return loading();
    const handlers = [...rows.values()].filter((row) => row.points);
    const chosen = handlers.find((each) => each.name === view.parameters.handler) ?? handlers[0];
    return [
      heading(view, run, handlers, chosen),
      chosen ? [
        chosen.breaker ? notice({ problem: "The breaker is open: the handler is paused, and one record is tried now and then.", hint: chosen.breaker }, "warn") : null,
        summary(chosen),
        controls(view, run, chosen),
        h("div", { class: "columns", key: "work" }, workers(view, chosen), flight(chosen)),
        h("div", { class: "columns", key: "pictures" }, throughput(chosen), latency(chosen), chosen.is_auto ? concurrency(chosen) : null),
        h("div", { class: "columns", key: "queues" }, lanes(chosen), retries(view, chosen)),
        (chosen.tenants ?? []).length ? tenants(chosen) : null,
        errors(view, chosen),
      ] : run.is_known ? nothing({ title: "No handler has started yet", text: "The app is joining its group." })
        : run.engine === "spark" ? nothing({ title: "This app runs on Spark", text: "The page Spark shows its slices and batches." }) : loading("Waiting for the app to say what it does…"),
    ];
  },
};

function heading(view, run, handlers, chosen) {
  return h("header", { class: "title", key: "title" },
    h("a", { class: "crumb", href: to("apps") }, icon("back", 14), "Live apps"),
    h("h1", {}, run.app), run.shortened ? chip("shortened", "plain", D.shortened) : null, chosen ? chip(chosen.state, TONES[chosen.state] ?? "plain") : null,
    h("span", { class: "note" }, `process ${run.pid} on ${run.here ? "this machine" : shown(run.host)} · since ${clock(run.since)}`),
    h("div", { class: "actions" },
      handlers.length > 1 ? choice({ options: handlers.map((each) => [each.name, shown(each.name)]), value: chosen.name, label: "Handler", on: (name) => view.go({ handler: name === handlers[0].name ? null : name }) }) : null,
      chosen ? h("a", { key: "group", class: "button", href: to("group", { name: chosen.group }) }, icon("groups"), "Group") : null));
}

function summary(its) {
  const now = Date.now() / 1000;
  return figures([
    { name: "Rate", value: rate(its.rate), tip: D.live_rate },
    { name: "In flight", value: count(its.in_flight), extra: its.max_in_flight ? `of ${short(its.max_in_flight)}` : null, tip: D.in_flight },
    { name: "Workers", value: count(its.busy), extra: its.concurrency ? `of ${count(its.concurrency)}${its.is_auto ? ", auto" : ""}` : null, tip: D.workers },
    { name: "Lanes", value: count(its.lanes), tip: D.lanes },
    { name: "Oldest record", value: its.oldest ? duration(Math.max(0, now - its.oldest)) : "–", tip: D.oldest },
    { name: "Retries", value: count(its.retrying), tone: its.retrying ? "warn" : null, tip: D.retries },
    { name: "Read", value: count(its.read), tip: D.run_read },
    { name: "Dead letters", value: count(its.dead_lettered), tone: its.dead_lettered ? "bad" : null, tip: D.run_dead, href: deadTopic(its) },
  ]);
}

function deadTopic(its) {
  const to_ = its.errors.find((each) => each.to)?.to;
  return to_ ? to("letters", { topic: to_ }) : null;
}

function workers(view, its) {
  const at = its.at_work ?? [];
  const slots = Math.min(MOST_SLOTS, its.concurrency ?? 0);
  const heat = (seconds) => STEPS.filter((step) => seconds >= step).length;
  const long = at.filter((each) => each.seconds >= LONG_SECONDS);
  return card({ title: "Workers", key: "workers", tip: D.at_work, note: `${count(its.busy)} of ${count(its.concurrency)} at work` },
    h("div", { class: "slots", role: "img", "aria-label": `${count(its.busy)} of ${plural(its.concurrency ?? 0, "worker")} at work` }, Array.from({ length: slots }, (_, index) => {
      const each = at[index];
      const busy = index < its.busy;
      return h("i", { key: index, class: each ? `slot heat-${Math.max(1, heat(each.seconds))}` : busy ? "slot heat-1" : "slot", tip: each ? `${shown(placeOf(each))}\nkey ${each.key === null ? "null" : shown(each.key)}\nattempt ${each.attempt}, for ${duration(each.seconds)}` : busy ? "at work" : "idle" });
    })),
    its.concurrency > MOST_SLOTS ? h("p", { class: "soft" }, `The first ${count(MOST_SLOTS)} are drawn.`) : null,
    h("div", { class: "legend", "aria-hidden": "true" }, ["idle", "10 ms", "0.1 s", "1 s", "10 s", "1 m", "10 m"].map((text, index) => h("span", { key: text }, h("i", { class: `heat-${index}` }), text))),
    h("h3", { class: "part-title" }, long.length ? `Longer than ${duration(LONG_SECONDS)}` : "Longest at work"),
    at.length ? table(["Record", "Key", "Attempt", "For"], (long.length ? long : at).slice(0, 8).map((each) => [placeOf(each), recordLink(view, each), cellOf(each.key), count(each.attempt), h("span", { class: each.seconds >= 60 ? "bad-text strong" : each.seconds >= LONG_SECONDS ? "warn-text strong" : null }, duration(each.seconds))]), 2) : h("p", { class: "soft" }, "No worker has a record now."),
    stuck(view, its));
}

function stuck(view, its) {
  const found = its.stuck.filter((each) => each.stack).slice(-3).reverse();
  if (!found.length) return null;
  return h("div", { key: "stuck" }, h("h3", { class: "part-title defined", tip: D.stuck, tabindex: 0 }, "Where threads were when they passed the timeout"),
    found.map((each) => h("details", { key: `${each.at} ${placeOf(each)}` }, h("summary", {}, `${shown(placeOf(each))} at ${clock(each.at)}, after ${duration(each.seconds)}`), h("pre", { class: "block", block: true, tabindex: 0 }, each.stack))));
}

function flight(its) {
  return card({ title: "In flight", key: "flight", tip: D.in_flight },
    meter("Records", its.in_flight, its.max_in_flight, count),
    meter("Bytes", its.bytes, its.max_bytes, bytes, its.small_bytes ? `Each value of up to ${bytes(its.small_bytes)} counts as that; larger ones as they are.` : null),
    h("h3", { class: "part-title" }, "Where they are"),
    h("dl", { class: "pairs" }, [
      ["Waiting", plural(its.waiting ?? 0, "record"), "In lanes, for a worker or for their turn."],
      ["With workers", plural(its.busy ?? 0, "record"), D.at_work],
      ["Being written", plural(its.sending ?? 0, "record"), "Handled: the broker has not acknowledged their outputs, or you have not acknowledged them."],
      ["Waiting for a retry", plural(its.retrying ?? 0, "lane"), D.retries],
    ].map(([name, value, tip]) => h("div", { key: name }, h("dt", { tip, tabindex: 0, class: "defined" }, name), h("dd", {}, value)))),
    h("h3", { class: "part-title" }, "By partition"),
    (its.partitions ?? []).length ? h("div", { class: "scroll-x short", tabindex: 0 }, table(["Partition", "In flight", "Lanes", "Committed", "Fetched to"], its.partitions.map((each) => [`${each.topic}-${each.partition}`, h("a", { href: to("group", { name: its.group, at: `${each.topic}/${each.partition}` }) }, `${each.topic}-${each.partition}`, each.paused ? [" ", chip("paused", "warn", D.fetch_paused)] : null), count(each.in_flight), count(each.lanes), count(each.committed), count(each.position)]), 1)) : h("p", { class: "soft" }, "It owns no partition now."));
}

function meter(name, value, most, format, tip) {
  const part = most ? Math.min(1, (value ?? 0) / most) : 0;
  return h("div", { class: "meter-line", key: name, tip },
    h("span", {}, name), h("span", { class: "right" }, `${format(value)} of ${format(most)}`),
    h("div", { class: "meter", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": most ?? 0, "aria-valuenow": value ?? 0 }, h("i", { class: part > 0.95 ? "bad" : part > 0.75 ? "warn" : "good", style: { width: `${(part * 100).toFixed(1)}%` } })));
}

function throughput(its) {
  return card({ title: "Records per second", key: "rate", tip: D.live_rate }, its.rates.length > 1 ? lineChart({ key: "rates", points: its.rates, height: 170, format: short, label: "Records per second over the last minutes" }) : h("p", { class: "soft" }, "Nothing was read in the last seconds."));
}

function latency(its) {
  const known = (its.latency ?? []).some(Boolean);
  return card({ title: "Time in the handler", key: "latency", tip: D.latency }, known ? latencyChart({ key: "bars", bounds: its.latency_bounds, counts: its.latency, height: 170 }) : h("p", { class: "soft" }, "No record was handled yet."));
}

function concurrency(its) {
  const points = its.found.length ? [...its.found, [Date.now() / 1000, its.concurrency]] : [];
  return card({ title: "Concurrency found", key: "auto", tip: D.auto, note: `now ${count(its.concurrency)}` }, points.length > 1 ? lineChart({ key: "found", points, height: 170, format: short, label: "The concurrency that auto has found" }) : h("p", { class: "soft" }, "It has not changed yet."));
}

function lanes(its) {
  const longest = (its.longest_lanes ?? []).filter((each) => each.waiting).slice(0, 12);
  const total = its.waiting || 1;
  const hot = its.hot_keys.slice(-3).reverse();
  return card({ title: "Longest lanes", key: "lanes", tip: D.lanes, note: plural(its.lanes ?? 0, "lane") },
    longest.length ? h("div", { class: "scroll-x", tabindex: 0 }, table(["Lane", "Partition", "Waiting", ""], longest.map((each) => [`${each.topic}-${each.partition} ${each.name}`, cellOf(each.name), `${each.topic}-${each.partition}`, [count(each.waiting), h("small", { class: "share" }, ` ${Math.round((100 * each.waiting) / total)} %`)], h("div", { class: "meter small" }, h("i", { class: each.waiting > total / 2 && its.lanes > 1 ? "warn" : "good", style: { width: `${((100 * each.waiting) / longest[0].waiting).toFixed(1)}%` } }))]), 2)) : h("p", { class: "soft" }, "No record waits."),
    hot.length ? [h("h3", { class: "part-title defined", tip: D.hot_keys, tabindex: 0 }, "Hot keys"), table(["Key", "Partition", "Waiting", "When"], hot.map((each) => [`${each.at}`, cellOf(each.key), `${each.topic}-${each.partition}`, `${count(each.waiting)} of ${count(each.of)}`, clock(each.at)]), 2)] : null);
}

function retries(view, its) {
  const waiting = its.retries ?? [];
  return card({ title: "Retries", key: "retries", tip: D.retries, note: plural(its.retrying ?? 0, "lane") },
    waiting.length ? h("div", { class: "scroll-x short", tabindex: 0 }, table(["Record", "Key", "Next attempt", "In", "Behind it"], waiting.map((each) => [placeOf(each), recordLink(view, each), cellOf(each.key), count(each.attempt), duration(each.seconds), count(each.behind)]), 2)) : h("p", { class: "soft" }, "No record waits for another attempt in memory."));
}

function tenants(its) {
  const weights = its.tenants.reduce((sum, each) => sum + each.weight, 0);
  return card({ title: "Tenants", key: "tenants", tip: D.tenants, note: plural(its.tenants.length, "tenant") },
    h("div", { class: "scroll-x short", tabindex: 0 }, table(["Tenant", "Weight", "Fair share", "Workers now", "Waiting", ""], its.tenants.map((each) => [each.name, h("span", { class: "mono" }, each.name), count(each.weight), percent(each.weight, weights), [count(each.busy), h("small", { class: "share" }, ` ${percent(each.busy, its.busy)}`)], count(each.waiting), h("div", { class: "meter small" }, h("i", { class: "good", style: { width: `${its.busy ? ((100 * each.busy) / its.busy).toFixed(1) : 0}%` } }))]), 1)));
}

function errors(view, its) {
  if (!its.errors.length) return card({ title: "Errors", key: "errors" }, h("p", { class: "soft" }, "No attempt has failed since the app started."));
  return card({ title: "Errors", key: "errors", tip: D.errors, note: `${plural(its.errors.length, "kind")}` }, its.errors.map((each) => h("details", { class: "error-group", key: `${each.first_at} ${each.reason.slice(0, 80)}` },
    h("summary", {}, h("span", { class: "strong error-reason" }, each.reason), h("span", { class: "error-facts" },
      chip(`${count(each.count)} ×`, each.dead || each.fatal ? "bad" : "warn"), each.dead ? chip(`${count(each.dead)} dead`, "bad", D.run_dead) : null, h("span", { class: "note" }, `last ${clock(each.last_at)}`))),
    h("p", { class: "soft error-links" }, each.last ? ["The last one: ", recordLink(view, { topic: each.last[0], partition: each.last[1], offset: each.last[2] })] : "It belongs to no record.",
      each.to ? [" · ", h("a", { href: to("letters", { topic: each.to }) }, "Dead letters")] : null, ` · first ${clock(each.first_at)}`),
    each.traceback ? h("pre", { class: "block", block: true, tabindex: 0, "aria-label": "Traceback" }, each.traceback) : null)));
}

/** Rows are [key, cell, …]; columns from `right` on are numbers. */
function table(names, rows, right) {
  return h("table", { class: "plain-table" }, h("thead", {}, h("tr", {}, names.map((name, index) => h("th", { key: index, class: index >= right ? "right" : null }, name)))),
    h("tbody", {}, rows.map(([key, ...cells]) => h("tr", { key }, cells.map((cell, index) => h("td", { key: index, class: index >= right ? "right" : null }, cell))))));
}
