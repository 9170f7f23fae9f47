// The shell: navigation, the current page, the connection, the keyboard. Pages are modules in pages/, named by the server.

import { themeChanged } from "./canvas.js";
import { h, patch } from "./dom.js";
import { Feed, get, post } from "./feed.js";
import { icon } from "./icons.js";
import { loading, notice, nothing, to } from "./parts.js";
import { startTooltips } from "./tooltip.js";

const ABOUT_MS = 15000;
const AGAIN_MS = 1500;

const shell = {
  about: null, // what /api/about says: version, writes, brokers, pages
  problem: null,
  route: { page: "", parameters: {} },
  page: null, // the module of the current page
  view: null,
  help: false,
};
let frame = 0;
let again = 0;

/** Draw soon: many calls become one. */
function update() {
  if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw(); });
}

const feed = new Feed(() => {
  if (feed.connection === "live" && (!shell.about || shell.about.brokers === null)) learn();
  update();
});

async function learn() {
  try {
    shell.about = await get("/api/about");
    shell.problem = null;
    if (!shell.page) await open();
    if (shell.about.brokers === null && !document.hidden) {
      clearTimeout(again);
      again = setTimeout(learn, AGAIN_MS);
    }
  } catch (error) {
    if (!shell.about) {
      shell.problem = error;
      setTimeout(learn, AGAIN_MS);
    }
  }
  update();
}

function readRoute() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: decodeURIComponent(path) || shell.about.pages[0].name, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

async function open() {
  const route = readRoute();
  const known = shell.about.pages.find((each) => each.name === route.page);
  const same = shell.view && route.page === shell.route.page && shell.page?.same?.(shell.route.parameters, route.parameters);
  shell.route = route;
  shell.problem = null;
  if (same) {
    shell.view.parameters = route.parameters;
    feed.follow(shell.page.topics?.(shell.view) ?? []);
    return update();
  }
  shell.page?.close?.(shell.view);
  shell.page = null;
  if (!known) {
    shell.view = null;
    feed.follow([]);
    return update();
  }
  try {
    if (known.style) addStyle(`/static/pages/${known.name}.css`);
    const module = await import(`./pages/${known.name}.js`);
    if (shell.route !== route) return;
    shell.page = module.default;
    shell.view = makeView(route);
    shell.page.start?.(shell.view);
    feed.follow(shell.page.topics?.(shell.view) ?? []);
    document.querySelector("main")?.scrollTo(0, 0);
    requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".places [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" })));
  } catch (error) {
    shell.problem = { problem: `The page ${known.name} cannot be loaded: ${error.message}`, hint: "" };
  }
  update();
}

/** What a page gets: its parameters, the feed, and ways to ask, act and redraw. `state` is the page's own. */
function makeView(route) {
  return {
    parameters: route.parameters,
    state: {},
    update,
    topic: (name) => feed.topic(name),
    look: (topic, keys) => feed.look(topic, keys),
    refollow: () => feed.follow(shell.page.topics?.(shell.view) ?? []),
    get: (name, parameters) => get(`/api/${route.page}/${name}`, parameters),
    post: (name, body) => post(`/api/${route.page}/${name}`, body),
    go: (parameters) => { location.hash = to(route.page, { ...shell.view.parameters, ...parameters }); },
    pages: new Set(shell.about.pages.map((each) => each.name)),
    get writes() { return shell.about.writes; },
    get formats() { return shell.about.formats; },
    get live() { return feed.connection === "live"; },
  };
}

function addStyle(href) {
  if ([...document.styleSheets].some((each) => each.href?.endsWith(href))) return;
  const node = document.createElement("link");
  node.rel = "stylesheet";
  node.href = href;
  document.head.append(node);
}

function draw() {
  const title = shell.page?.title?.(shell.view) ?? "Penstock";
  if (document.title !== `${title} · Penstock`) document.title = title === "Penstock" ? title : `${title} · Penstock`;
  patch(document.body.querySelector("#root"), [
    h("a", { class: "skip", href: "#main", on: { click: (event) => { event.preventDefault(); document.querySelector("main").focus(); } } }, "Skip to the content"),
    navigation(),
    h("main", { id: "main", tabindex: -1 }, banner(), content()),
    shell.help ? help() : null,
  ]);
}

function content() {
  if (shell.problem) return notice(shell.problem);
  if (!shell.about) return loading("Connecting…");
  if (!shell.page) {
    const known = shell.about.pages.some((each) => each.name === shell.route.page);
    return known ? loading("Loading…") : nothing({ title: `There is no page “${shell.route.page}”`, text: "The navigation lists all pages." });
  }
  const topics = (shell.page.topics?.(shell.view) ?? []).map((each) => feed.topic(each));
  const trouble = topics.find((each) => each.trouble)?.trouble;
  // The first topic is what the page is about: without it, the page would say that there is nothing.
  const empty = topics.length > 0 && !topics[0].complete;
  return h("div", { key: `page ${shell.route.page}`, class: `page page-${shell.route.page}` },
    trouble ? notice(trouble) : null,
    !empty || shell.page.waits === false ? shell.page.render(shell.view) : trouble ? howToStart(trouble) : loading());
}

function howToStart(trouble) {
  if (!/broker|Kafka/i.test(`${trouble.problem} ${trouble.hint}`)) return null;
  return nothing({ title: "No Kafka to look at, yet", text: "Start the embedded Kafka, or start the dashboard with --brokers HOST:PORT. This page continues as soon as a broker answers.", command: "penstock up" });
}

function banner() {
  if (feed.connection === "lost") return notice({ problem: "The dashboard does not answer.", hint: "Start it again with `penstock ui` on the same --port, and open its new link: this page then continues." }, "warn");
  if (feed.connection === "signed-out") return notice({ problem: "The dashboard was started again.", hint: "Open the new link that it printed, in any tab: this page then continues." }, "warn");
  return null;
}

function navigation() {
  const open = shell.about?.pages.find((each) => each.name === shell.route.page);
  const here = open?.under || open?.name;
  const troubled = [...feed.topics.values()].some((each) => each.trouble);
  const hasBroker = Boolean(shell.about?.brokers);
  const tone = (troubled || !hasBroker) && feed.connection === "live" ? "warn" : { live: "good", connecting: "warn", lost: "bad", "signed-out": "bad" }[feed.connection];
  const said = troubled && feed.connection === "live" ? "Something cannot be read now: the page says what" : !hasBroker && feed.connection === "live" ? "No broker has answered yet" : { live: "Connected: figures update by themselves", connecting: "Connecting…", lost: "The dashboard does not answer", "signed-out": "Signed out" }[feed.connection];
  return h("nav", { class: "side", "aria-label": "Pages" },
    h("a", { class: "brand", href: "#/" }, h("img", { src: "/static/icon.svg", alt: "", width: 22, height: 22 }), h("span", {}, "Penstock")),
    h("div", { class: "places" }, (shell.about?.pages ?? []).filter((each) => each.title).map((each, index) =>
      h("a", { key: each.name, href: `#/${each.name}`, "aria-current": each.name === here ? "page" : null, tip: `${each.title} (key ${index + 1})` }, icon(each.icon), h("span", {}, each.title)))),
    h("div", { class: "foot" },
      h("div", { class: "connection", tip: said, role: "status" }, h("i", { class: `dot ${tone}` }), h("span", {}, shell.about?.brokers ?? "no broker")),
      shell.about && !shell.about.writes ? h("span", { class: "chip plain", tip: "Nothing can be changed from this page. Start it with --allow-writes to pause, resume and replay." }, "read-only") : null,
      shell.about?.writes ? h("span", { class: "chip warn", tip: "This dashboard may change things: each change is confirmed and logged." }, "may write") : null,
      h("button", { type: "button", class: "icon-button", "aria-label": "Light or dark", tip: "Light or dark (key t)", on: { click: switchTheme } }, icon("theme")),
      h("button", { type: "button", class: "icon-button", "aria-label": "Keys", tip: "Keys (?)", on: { click: toggleHelp } }, icon("help"))));
}

const KEYS = [["1 – 9", "open a page"], ["/", "filter"], ["↑ ↓ or j k", "move in a table"], ["Enter", "open the row"], ["Esc", "close, or clear the filter"], ["t", "light or dark"], ["?", "these keys"]];

function help() {
  return h("div", { class: "help", key: "help", role: "dialog", "aria-label": "Keys", on: { click: toggleHelp } },
    h("div", {}, h("h2", {}, "Keys"), h("dl", {}, KEYS.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]))));
}

function toggleHelp() {
  shell.help = !shell.help;
  update();
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  themeChanged();
}

function switchTheme() {
  const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
  const theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", theme); } catch { /* private window */ }
  setTheme(theme);
}

function keyed(event) {
  const typing = event.target.matches("input, textarea, select, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (shell.help) toggleHelp();
    else if (typing) event.target.blur();
    return;
  }
  if (typing) return;
  const pages = (shell.about?.pages ?? []).filter((each) => each.title);
  if (event.key === "?") toggleHelp();
  else if (event.key === "t") switchTheme();
  else if (event.key === "/") {
    const field = document.querySelector("[data-filter]");
    if (field) { field.focus(); event.preventDefault(); }
  } else if (/^[1-9]$/.test(event.key) && pages[event.key - 1]) location.hash = `#/${pages[event.key - 1].name}`;
  else shell.page?.key?.(event, shell.view);
}

function start() {
  const root = document.createElement("div");
  root.id = "root";
  document.body.replaceChildren(root);
  startTooltips();
  try { setTheme(localStorage.getItem("theme")); } catch { /* private window */ }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", themeChanged);
  addEventListener("hashchange", () => shell.about && open());
  addEventListener("keydown", keyed);
  addEventListener("resize", update);
  setInterval(() => !document.hidden && feed.connection === "live" && learn(), ABOUT_MS);
  draw();
  learn();
}

start();
