// Pause, resume and change a running app: previewed, confirmed, and only with --allow-writes.

import { h, shown } from "../dom.js";
import { button, card, chip, confirmed, notice, toast } from "../parts.js";

/** What commands can change in a handler. `its.control` is how it stands; without it the run takes no commands. */
export function controls(view, run, its) {
  const state = its.control;
  if (!state) return null;
  const form = (view.state.control ??= { partition: "", concurrency: "", rate: "" });
  const readOnly = view.writes ? null : "This dashboard is read-only. Start it with --allow-writes.";
  const isPaused = state.paused || state.paused_partitions.length > 0;
  const act = (action) => command(view, run, its, { action, ...(action === "set" ? { concurrency: form.concurrency, rate: form.rate } : { partition: form.partition }) });
  const field = (name, label, tip, now) => h("label", { class: "inline", key: name, tip }, label, h("input", { class: "field", size: 6, value: form[name], placeholder: now, on: { change: (event) => { form[name] = event.target.value.trim(); view.update(); } } }));
  const partitions = [...new Set([...state.partitions, ...state.paused_partitions])];
  return card({ title: "Control", key: "control", tip: "Commands to this app. They last until its end, and each is an event with who and when.", actions: state.paused ? chip("paused", "warn") : state.paused_partitions.length ? chip(`${state.paused_partitions.length} paused`, "warn", state.paused_partitions.map(shown).join(", ")) : chip("running", "good") },
    view.state.controlProblem ? notice(view.state.controlProblem, "warn") : null,
    h("div", { class: "actions-row" },
      h("label", { class: "inline", tip: "Which partitions a pause or a resume is for." }, "Partitions", h("select", { class: "field", key: "partition", value: form.partition, on: { change: (event) => { form.partition = event.target.value; view.update(); } } },
        h("option", { key: "all", value: "" }, "all"),
        partitions.map((each) => h("option", { key: each, value: placeOf(each) }, each)))),
      button({ text: "Pause…", key: "pause", disabled: !view.writes || state.paused, tip: readOnly, on: () => act("pause") }),
      button({ text: "Resume…", key: "resume", disabled: !view.writes || !isPaused, tip: readOnly, on: () => act("resume") }),
      field("concurrency", "Concurrency", "How many records run at once in a member: a number, or auto.", String(state.concurrency)),
      field("rate", "Rate", "How often the handler is called: 100 in a second, 100/1m in a minute, or none.", state.rate ?? "none"),
      button({ text: "Set…", key: "set", disabled: !view.writes, tip: readOnly, on: () => act("set") }),
      view.writes ? null : h("span", { class: "soft" }, readOnly)));
}

/** `orders[3]` as the server takes it: `orders:3`. */
function placeOf(name) {
  return name.replace(/\[(\d+)\]$/, ":$1");
}

async function command(view, run, its, wanted) {
  const request = { run: run.id, handler: its.name, ...wanted };
  view.state.controlProblem = null;
  try {
    const plan = await view.post("preview", request);
    const go = { pause: "Pause", resume: "Resume", set: "Set" }[wanted.action];
    if (await confirmed({ title: `${go} ${shown(its.name)}?`, lines: [plan.does, `The same on the command line: ${plan.command}`], go })) {
      await view.post("command", { ...request, state: plan.state });
      toast(`${shown(its.name)}: ${plan.does}`);
    }
  } catch (error) {
    view.state.controlProblem = { problem: error.problem ?? error.message, hint: error.hint };
  }
  view.update();
}
