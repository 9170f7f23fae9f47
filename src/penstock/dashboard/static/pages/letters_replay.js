// A replay of dead letters: its preview, and its progress.

import { h } from "../dom.js";
import { count, percent, plural } from "../format.js";
import { button, card, chip, commandLine, confirmed, notice, toast } from "../parts.js";
import { whenOf } from "../record_parts.js";

/** What the replay that was previewed would do. `started` is called after it began. */
export function replayCard(view, started) {
  const { plan, planProblem, form, wanted } = view.state;
  const again = () => plan_(view);
  const left = plan ? [
    [plan.replayed_before, "were replayed before"], [plan.not_selected, "are not chosen"], [plan.no_source, "have no source topic that exists: name a topic to send them to"],
  ].filter(([number]) => number) : [];
  return card({ title: "Replay", key: "replay", tip: "Each dead letter is sent once, in transactions with the offsets that were replayed, even if the replay is interrupted.", actions: button({ text: "Close", on: () => { Object.assign(view.state, { plan: null, planProblem: null }); view.update(); } }) },
    h("div", { class: "replay-form" },
      h("label", { class: "inline", tip: "Send all to this topic. Empty: each to its source topic." }, "To topic", h("input", { class: "field", key: "to", value: form.to, placeholder: "the source topic", on: { change: (event) => { form.to = event.target.value.trim(); again(); } } })),
      h("label", { class: "inline", tip: "At most so many records per second. Empty: as fast as possible." }, "Rate", h("input", { class: "field", key: "rate", size: 8, inputmode: "decimal", value: form.rate, placeholder: "no limit", on: { change: (event) => { form.rate = event.target.value.trim(); again(); } } })),
      h("label", { class: "inline", tip: "Also send what was replayed before." }, h("input", { type: "checkbox", key: "again", checked: form.again, on: { change: (event) => { form.again = event.target.checked; again(); } } }), "Again")),
    planProblem ? notice(planProblem, "warn") : null,
    plan?.misses ? notice({ problem: `The filter failed for ${plural(plan.misses, "record")}, which do not match.` }, "warn") : null,
    plan ? [
      plan.total ? h("table", { class: "plain-table", key: "plan" }, h("thead", {}, h("tr", {}, h("th", {}, "To"), h("th", {}, "Reason"), h("th", { class: "right" }, "Dead letters"))),
        h("tbody", {}, plan.going.map((each) => h("tr", { key: `${each.to} ${each.reason}` }, h("td", {}, each.to), h("td", {}, each.reason), h("td", { class: "right" }, count(each.count)))),
          plan.parked ? h("tr", { key: "parked" }, h("td", {}, plan.parked_topic), h("td", {}, "came back too often"), h("td", { class: "right" }, count(plan.parked))) : null))
        : h("p", { class: "strong" }, "Nothing would be sent."),
      left.length ? h("p", { class: "soft", key: "left" }, `Not replayed: ${left.map(([number, why]) => `${count(number)} ${why}`).join(", ")}.`) : null,
      h("div", { class: "actions-row", key: "go" },
        button({ text: `Replay ${plural(plan.total, "dead letter")}…`, key: "go", tone: "primary", disabled: !plan.total || !view.writes, tip: view.writes ? null : "This dashboard is read-only. Start it with --allow-writes.", on: () => replay(view, started) }),
        view.writes ? null : h("span", { class: "soft" }, "This dashboard is read-only: start it with --allow-writes, or run this command.")),
      wanted.at?.length > 20 ? null : commandLine(plan.command),
    ] : null);
}

async function plan_(view) {
  try {
    Object.assign(view.state, { plan: await view.post("plan", { ...view.state.wanted, ...view.state.form }), planProblem: null });
  } catch (error) {
    Object.assign(view.state, { plan: null, planProblem: { problem: error.problem ?? error.message, hint: error.hint } });
  }
  view.update();
}

async function replay(view, started) {
  const { plan, wanted, form } = view.state;
  const targets = new Set(plan.going.map((each) => each.to));
  const lines = [`From ${wanted.topic}: ${plural(plan.total - plan.parked, "record")} to ${[...targets].slice(0, 4).join(", ")}${targets.size > 4 ? " and others" : ""}.`];
  if (plan.parked) lines.push(`${plural(plan.parked, "dead letter")} that came back too often go to ${plan.parked_topic}.`);
  lines.push("Handlers of these topics process them again. This cannot be undone. It is logged in the audit file.");
  if (!(await confirmed({ title: `Replay ${plural(plan.total, "dead letter")}?`, lines, go: "Replay" }))) return;
  try {
    await view.post("replay", { ...wanted, ...form, total: plan.total });
    Object.assign(view.state, { plan: null, chosen: new Set() });
    toast("The replay has started.");
    started(view);
  } catch (error) {
    view.state.planProblem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  view.update();
}

/** The replays that this dashboard has started; with a topic, only its own. The last one reads the list again. */
export function replaysOf(view, topic) {
  const jobs = [...view.topic("replays").rows.values()].filter((each) => !topic || each.topic === topic).sort((a, b) => b.began - a.began).slice(0, 3);
  const ended = jobs.filter((each) => each.ended).length;
  if (view.state.ended !== undefined && view.state.ended !== ended) view.state.asked = null;
  view.state.ended = ended;
  if (!jobs.length) return null;
  return card({ title: "Replays", key: "replays", tip: "The last replays that were started here." }, jobs.map((each) => progress(view, each)));
}

const TONES = { running: "accent", stopping: "warn", stopped: "warn", failed: "bad", done: "good" };

function progress(view, job) {
  return h("div", { key: job.id, class: "replay" },
    h("div", { class: "replay-form" }, chip(job.state, TONES[job.state]), h("span", { class: "strong" }, job.topic), h("span", { class: "soft" }, whenOf(job.began)),
      h("span", {}, `${count(job.sent)} of ${plural(job.total, "dead letter")}`, job.total ? h("span", { class: "muted" }, ` ${percent(job.sent, job.total)}`) : null),
      job.state === "running" ? button({ text: "Stop", tone: "danger", key: "stop", tip: "It ends after its current batch. A further replay sends the rest.", on: () => stop(view, job) }) : null),
    h("div", { class: "bar-track", role: "progressbar", "aria-label": `Replay of ${job.topic}`, "aria-valuemin": 0, "aria-valuemax": job.total, "aria-valuenow": job.sent }, h("i", { class: job.state, style: { width: `${job.total ? (100 * job.sent) / job.total : 100}%` } })),
    job.problem ? notice({ problem: job.problem[0], hint: job.problem[1] }) : null);
}

async function stop(view, job) {
  try { await view.post("stop", { id: job.id }); } catch (error) { toast(error.problem ?? error.message, "bad"); }
}
