// How records look, on every page that shows some. All text was decoded by the server.

import { h } from "./dom.js";
import { bytes, clock } from "./format.js";
import { notice } from "./parts.js";

/** A key or value in a line; null is marked. */
export function cellOf(text) {
  return text === null || text === undefined ? h("span", { class: "muted" }, "null") : h("span", { class: "mono" }, text);
}

/** Key, value and headers of one record in full. */
export function wholeRecord(record) {
  return h("div", { class: "record", key: "record" },
    part("Key", record.key, record.key_problem),
    part("Value", record.value, record.value_problem, bytes(record.bytes)),
    record.headers.length ? h("div", { key: "headers" }, h("h3", {}, "Headers"),
      h("div", { class: "scroll-x", tabindex: 0 }, h("table", { class: "plain-table headers" }, h("tbody", {}, record.headers.map(([name, value], index) =>
        h("tr", { key: index }, h("th", { scope: "row" }, name), h("td", { class: "mono" }, value))))))) : null);
}

function part(name, text, problem, note = null) {
  return h("div", { key: name }, h("h3", {}, name, note ? h("span", { class: "note" }, note) : null),
    problem ? notice({ problem: "It cannot be decoded.", hint: problem }, "warn") : null,
    text === null ? h("p", { class: "muted" }, "null") : h("pre", { class: "block", block: true, tabindex: 0, "aria-label": name }, text));
}

/** The time of a record in both forms that people look for. */
export function whenOf(at) {
  return at === null || at === undefined ? h("span", { class: "muted" }, "no time") : h("span", { tip: new Date(at * 1000).toISOString() }, clock(at));
}

/** The choice of a format, if there is more than one. */
export function formatChoice(view) {
  if (view.formats.length < 2) return null;
  const chosen = view.parameters.as ?? view.formats[0];
  return h("label", { class: "inline", tip: "How keys and values are decoded. Avro and JSON Schema come from the schema registry; app: as the handlers of --app do." }, "Decode as",
    h("select", { class: "field", key: "format", value: chosen, on: { change: (event) => view.go({ as: event.target.value === view.formats[0] ? null : event.target.value }) } },
      view.formats.map((each) => h("option", { key: each, value: each, selected: each === chosen }, each))));
}

/** A row for each name and value. */
export function pairs(list) {
  return h("dl", { class: "pairs" }, list.filter(Boolean).map(([name, value, tip]) => h("div", { key: name }, h("dt", tip ? { tip, tabindex: 0, class: "defined" } : {}, name), h("dd", {}, value))));
}
