// Builds and patches the page: `h` describes elements, `patch` changes only what differs. Nothing is ever rendered again as
// a whole, and there is no innerHTML: foreign text becomes text nodes, with invisible characters shown as escapes.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "path", "g", "rect", "circle", "line", "polyline", "polygon", "text"]);
// Control, format, surrogate, private, unassigned, and the separators of lines and paragraphs; as foreign_text.py does.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;
const NAMED = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };
const SAFE_LINK = /^(#|\/(?!\/)|https?:\/\/)/;

const states = new WeakMap(); // element → what `patch` last did to it

/** The text as one line in which every character is visible. */
export function shown(text) {
  return String(text).replace(INVISIBLE, (each) => {
    const code = each.codePointAt(0);
    return NAMED[each] ?? (code <= 0xff ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`);
  });
}

/** Several lines of foreign text, such as a traceback. */
export function shownBlock(text) {
  return String(text).split("\n").map((line) => shown(line.replaceAll("\t", "    "))).join("\n");
}

/**
 * Describes an element. Props: `key` (identity among its siblings), `class`, `style` (an object), `on` (listeners by
 * event), `tip` (the tooltip), `draw` (canvas: see canvas.js), `mounted` (called once with the element), `block` (its
 * text may have several lines), and attributes. Children: strings, numbers, elements, arrays; null and false are left out.
 */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, key: props?.key, children };
}

function flat(children, into = []) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === true) continue;
    if (Array.isArray(child)) flat(child, into);
    else into.push(typeof child === "object" ? child : { tag: "#text", text: String(child) });
  }
  return into;
}

/** Makes the children of `parent` what `children` describe. */
export function patch(parent, children, block = false) {
  const before = states.get(parent)?.children ?? new Map();
  const wanted = new Map();
  const counts = new Map();
  for (const child of flat(children)) {
    let id = child.key === undefined ? null : `key ${child.key}`;
    if (id === null) {
      const count = counts.get(child.tag) ?? 0;
      counts.set(child.tag, count + 1);
      id = `${child.tag} ${count}`;
    }
    while (wanted.has(id)) id += "'";
    wanted.set(id, child);
  }
  // Leavers go first, so that the others need not move: an element that moves loses the focus.
  for (const [id, entry] of before) {
    if (wanted.get(id)?.tag !== entry.child.tag) {
      entry.node.remove();
      before.delete(id);
    }
  }
  const after = new Map();
  let cursor = parent.firstChild;
  for (const [id, child] of wanted) {
    const entry = before.get(id);
    const node = entry?.node ?? create(child);
    update(node, entry?.child, child, block);
    if (node === cursor) cursor = cursor.nextSibling;
    else parent.insertBefore(node, cursor);
    after.set(id, { node, child });
    if (!entry && child.props?.mounted) child.props.mounted(node);
  }
  const state = states.get(parent) ?? {};
  state.children = after;
  states.set(parent, state);
}

function create(child) {
  if (child.tag === "#text") return document.createTextNode("");
  return SVG_TAGS.has(child.tag) ? document.createElementNS(SVG, child.tag) : document.createElement(child.tag);
}

function update(node, old, child, block) {
  if (child.tag === "#text") {
    if (old?.text !== child.text) node.data = block ? shownBlock(child.text) : shown(child.text);
    return;
  }
  const was = old?.props ?? {};
  const now = child.props;
  for (const name of Object.keys(was)) if (!(name in now)) setProp(node, name, null, was[name]);
  for (const name of Object.keys(now)) if (was[name] !== now[name] || name === "value") setProp(node, name, now[name], was[name]);
  patch(node, child.children, block || Boolean(now.block));
  if (child.tag === "select") setProp(node, "value", now.value); // its options exist only now
}

function setProp(node, name, value, was) {
  switch (name) {
    case "key": case "mounted": case "block": return;
    case "on": return listen(node, value ?? {});
    case "style": return restyle(node, value ?? {}, was ?? {});
    case "draw": node.draw = value; node.redraw?.(); return;
    case "at": node.at = value; return;
    case "tip": return value ? node.setAttribute("data-tip", shownBlock(value)) : node.removeAttribute("data-tip");
    case "value": if (node.tagName === "OPTION") return setAttribute(node, name, value); // else its text is its value
      if (node !== document.activeElement && node.value !== value) node.value = value ?? ""; return;
    case "checked": node.checked = Boolean(value); return;
    default: setAttribute(node, name, value);
  }
}

function setAttribute(node, name, value) {
  if (name === "href" && value && !SAFE_LINK.test(value)) value = null;
  if (value === null || value === undefined || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : name === "href" ? String(value) : shown(value));
}

function restyle(node, style, was) {
  for (const name of Object.keys(was)) if (!(name in style)) node.style.removeProperty(name);
  for (const [name, value] of Object.entries(style)) if (was[name] !== value) node.style.setProperty(name, value);
}

function listen(node, handlers) {
  const state = states.get(node) ?? {};
  states.set(node, state);
  if (!state.dispatch) {
    state.dispatch = (event) => state.handlers[event.type]?.(event);
    state.listening = new Set();
  }
  state.handlers = handlers;
  for (const type of Object.keys(handlers)) {
    if (state.listening.has(type)) continue;
    state.listening.add(type);
    node.addEventListener(type, state.dispatch);
  }
}
