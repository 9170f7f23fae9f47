// The parts that pages are built from: cards, figures, labels, states, dialogs.

import { h } from "./dom.js";
import { icon } from "./icons.js";

/** A titled box. `actions` stand at the right end of the title; `tip` defines what is shown. */
export function card(props, ...children) {
  const { title, tip, actions, key, note, class: name } = props;
  return h("section", { class: `card ${name ?? ""}`, key: key ?? title, "aria-label": title },
    title ? h("header", { class: "card-head" }, h("h2", tip ? { tip, tabindex: 0, class: "defined" } : {}, title), note ? h("span", { class: "note" }, note) : null, actions ? h("div", { class: "actions" }, actions) : null) : null,
    children);
}

/** One figure with its name. `tip` is its definition; `href` leads to what it counts. */
export function figure({ name, value, tip, tone, href, extra }) {
  return h("div", { class: href ? "figure leads" : "figure", key: name }, h("dt", { tip, tabindex: tip ? 0 : null, class: tip ? "defined" : null }, name),
    h("dd", { class: tone ?? null }, href ? h("a", { href }, value) : value, extra ? h("small", {}, extra) : null));
}

export function figures(list) {
  return h("dl", { class: "figures" }, list.filter(Boolean).map(figure));
}

const TONES = { OK: "good", WARN: "warn", STALL: "bad", STOP: "bad", REWIND: "odd" };

export function toneOf(status) {
  return TONES[status] ?? "plain";
}

/** A coloured label; its text says the same as its colour. */
export function chip(text, tone = "plain", tip = null) {
  return h("span", { class: `chip ${tone}`, tip }, text);
}

export function link(href, text, props = {}) {
  return h("a", { href, ...props }, text);
}

/** The address of a page: `to("group", { name })`. */
export function to(page, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== ""));
  return query.size ? `#/${page}?${query}` : `#/${page}`;
}

export function button({ text, on, tone = "", icon: name, disabled, tip, key, label }) {
  return h("button", { key: key ?? text, type: "button", class: `button ${tone}`, disabled: Boolean(disabled), tip, "aria-label": label ?? null, on: { click: on } }, name ? icon(name) : null, text ?? null);
}

/** A choice of one among few, as buttons. `options` are [value, text, tip]. */
export function choice({ options, value, on, label }) {
  return h("div", { class: "choice", role: "group", "aria-label": label },
    options.map(([each, text, tip]) => h("button", { key: each, type: "button", "aria-pressed": String(each === value), tip: tip ?? null, on: { click: () => on(each) } }, text)));
}

/** What stands where there is nothing to show: what is missing, and what to do. `command` can be copied. */
export function nothing({ title, text, command }) {
  return h("div", { class: "nothing", key: "nothing" }, h("h2", {}, title), text ? h("p", {}, text) : null, command ? commandLine(command) : null);
}

/** A command with a button that copies it. */
export function commandLine(text) {
  return h("div", { class: "command", key: `command ${text}` }, h("code", {}, text),
    h("button", { type: "button", class: "icon-button", "aria-label": "Copy the command", tip: "Copy", on: { click: (event) => copied(event.currentTarget, text) } }, icon("copy")));
}

async function copied(button, text) {
  try { await navigator.clipboard.writeText(text); } catch { return; }
  button.setAttribute("data-tip", "Copied");
  setTimeout(() => button.setAttribute("data-tip", "Copy"), 1500);
}

export function loading(text = "Reading from Kafka…") {
  return h("div", { class: "nothing", key: "loading", role: "status" }, h("div", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i")), h("p", {}, text));
}

/** A message with its hint: `trouble` is { problem, hint }. */
export function notice(trouble, tone = "bad") {
  return h("div", { class: `notice ${tone}`, key: `notice ${trouble.problem}`, role: "alert" }, h("strong", {}, trouble.problem), trouble.hint ? h("span", {}, trouble.hint) : null);
}

/**
 * Ask before something changes. Resolves to true or false. `lines` say what will happen; `go` is the text of the button.
 */
export function confirmed({ title, lines, go, tone = "primary" }) {
  return new Promise((resolve) => {
    const dialog = document.createElement("dialog");
    const make = (tag, text, name) => {
      const node = document.createElement(tag);
      node.textContent = text;
      if (name) node.className = name;
      return node;
    };
    const yes = make("button", go, `button ${tone}`);
    const no = make("button", "Cancel", "button");
    const row = make("div", "", "dialog-actions");
    row.append(no, yes);
    dialog.append(make("h2", title), ...lines.map((each) => make("p", each)), row);
    dialog.setAttribute("aria-label", title);
    let answer = false;
    yes.addEventListener("click", () => { answer = true; dialog.close(); });
    no.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => { dialog.remove(); resolve(answer); });
    document.body.append(dialog);
    dialog.showModal();
    no.focus();
  });
}

let toastTimer;
/** Say for a few seconds what has happened. */
export function toast(text, tone = "good") {
  let box = document.querySelector(".toast");
  if (!box) {
    box = document.createElement("div");
    box.setAttribute("role", "status");
    document.body.append(box);
  }
  box.className = `toast ${tone}`;
  box.textContent = text;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => box.remove(), 6000);
}
