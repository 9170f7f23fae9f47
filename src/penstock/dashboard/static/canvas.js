// Canvases that are sharp on every screen, follow the theme, and redraw only when something changed.

import { h } from "./dom.js";

const observer = new ResizeObserver((entries) => entries.forEach((each) => each.target.redraw?.()));
const canvases = new Set(); // WeakRefs would do; canvases of other pages remove themselves when they redraw
let colours = new Map();

/** A colour of the theme, such as `--accent`. Canvases know no custom properties. */
export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return colours.get(name);
}

/** Draw all canvases again, in the colours of another theme. */
export function themeChanged() {
  colours = new Map();
  for (const canvas of canvases) canvas.redraw();
}

/**
 * A canvas. `draw(context, width, height)` works in CSS pixels; pass a new function only if the picture changed.
 * `at(x, y)` returns what is there: `{ tip, href }` or null; `label` says what it shows to those who cannot see it.
 */
export function canvas({ key, height, draw, at, label, class: name, minWidth = 0 }) {
  return h("canvas", {
    key, draw, at, class: name, role: "img", "aria-label": label, style: { height: `${height}px`, "min-width": `${minWidth}px` },
    mounted: mount, on: { mousemove: hover, mouseleave: leave, click: follow },
  });
}

function mount(node) {
  let frame = 0;
  node.redraw = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => paint(node));
  };
  canvases.add(node);
  observer.observe(node);
  node.redraw();
}

function paint(node) {
  if (!node.isConnected) {
    canvases.delete(node);
    observer.unobserve(node);
    return;
  }
  const { width, height } = node.getBoundingClientRect();
  const scale = devicePixelRatio || 1;
  if (!width || !height) return;
  if (node.width !== Math.round(width * scale)) node.width = Math.round(width * scale);
  if (node.height !== Math.round(height * scale)) node.height = Math.round(height * scale);
  const context = node.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `11px ${getComputedStyle(node).fontFamily}`;
  node.draw(context, width, height);
}

function hover(event) {
  const found = event.target.at?.(event.offsetX, event.offsetY, event.target.clientWidth, event.target.clientHeight);
  event.target.style.setProperty("cursor", found?.href ? "pointer" : "default");
  event.target.dispatchEvent(new CustomEvent("tip", { bubbles: true, detail: found?.tip ? { text: found.tip, x: event.clientX, y: event.clientY } : null }));
}

function leave(event) {
  event.target.dispatchEvent(new CustomEvent("tip", { bubbles: true, detail: null }));
}

function follow(event) {
  const found = event.target.at?.(event.offsetX, event.offsetY, event.target.clientWidth, event.target.clientHeight);
  if (found?.href?.startsWith("#")) location.hash = found.href;
}

/** A small line of values, as in a table. Values may be null where they are unknown: the line has a gap there. */
export function sparkline(values, { width = 84, height = 20, label = "" } = {}) {
  const known = values.filter((each) => each !== null && each !== undefined);
  const top = Math.max(1, ...known);
  const step = values.length > 1 ? (width - 4) / (values.length - 1) : 0;
  const runs = [[]];
  values.forEach((each, index) => {
    if (each === null || each === undefined) runs.push([]);
    else runs.at(-1).push([(2 + index * step).toFixed(1), (height - 2 - (each / top) * (height - 4)).toFixed(1)]);
  });
  const low = height - 1;
  return h("svg", { class: "spark", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    runs.filter((run) => run.length > 1).map((run) => {
      const points = run.map((each) => each.join(",")).join(" ");
      return [h("polygon", { class: "spark-area", points: `${run[0][0]},${low} ${points} ${run.at(-1)[0]},${low}` }), h("polyline", { points })];
    }));
}
