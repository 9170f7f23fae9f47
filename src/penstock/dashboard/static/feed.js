// The feed of this page: one stream of Server-Sent Events, which stops while the page is hidden.

const AGAIN_MS = 1500;
const REFUSED_MS = 10000; // what was refused, such as a wrong address, is probably refused again

export class Feed {
  /** `changed` is called after each message and each change of the connection. */
  constructor(changed) {
    this.changed = changed;
    this.topics = new Map(); // topic → { rows: Map, trouble, complete }
    this.connection = "connecting"; // "live", "lost" or "signed-out"
    this.viewer = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.#open()));
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => event.persisted && this.#open());
  }

  /** Follow these topics, and no others. Topics that were followed before keep their rows. */
  follow(topics) {
    const before = [...this.topics.keys()];
    if (topics.length === before.length && topics.every((each) => this.topics.has(each))) return;
    const kept = this.topics;
    this.topics = new Map(topics.map((each) => [each, kept.get(each) ?? empty()]));
    this.#close();
    if (!document.hidden) this.#open();
  }

  topic(name) {
    return this.topics.get(name) ?? empty();
  }

  /** Say which rows of a topic are on the screen: some figures are read only for them. */
  look(topic, keys) {
    const said = keys.join("\n");
    const state = this.topics.get(topic);
    if (!state) return;
    state.wanted = keys;
    if (!this.viewer || state.looked === said) return;
    state.looked = said;
    post("/api/feed/look", { viewer: this.viewer, topic, keys }).catch(() => { state.looked = null; });
  }

  #open() {
    this.#close();
    if (!this.topics.size) return;
    const query = new URLSearchParams([...this.topics.keys()].map((each) => ["topic", each]));
    const source = (this.source = new EventSource(`/api/feed?${query}`));
    source.addEventListener("viewer", (event) => {
      this.viewer = JSON.parse(event.data);
      this.#become("live");
      for (const [topic, state] of this.topics) {
        state.looked = null;
        if (state.wanted) this.look(topic, state.wanted);
      }
    });
    source.addEventListener("message", (event) => this.#take(JSON.parse(event.data)));
    source.addEventListener("error", () => this.#broken(source));
  }

  #close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    this.viewer = null;
  }

  async #broken(source) {
    if (source !== this.source) return;
    this.#close();
    const why = await refusal(source.url);
    if (this.source || document.hidden) return; // it was opened again meanwhile, or will be
    if (why.error) for (const state of this.topics.values()) state.trouble = why.error;
    this.#become(why.connection);
    this.timer = setTimeout(() => !document.hidden && this.#open(), why.error ? REFUSED_MS : AGAIN_MS);
  }

  #become(connection) {
    this.connection = connection;
    this.changed();
  }

  #take(message) {
    const state = this.topics.get(message.topic);
    if (!state) return;
    if (message.rows) {
      state.rows = new Map(Object.entries(message.rows));
      state.complete = message.complete;
    }
    if ("trouble" in message) state.trouble = message.trouble;
    for (const [key, fields] of Object.entries(message.set ?? {})) {
      // A new object for a changed row, so that whoever kept the old one sees that it changed.
      state.rows.set(key, { ...state.rows.get(key), ...fields });
    }
    for (const key of message.gone ?? []) state.rows.delete(key);
    state.at = Date.now();
    state.version += 1;
    this.changed();
  }
}

/** Why the stream at this address failed: it does not say so, but a plain request for it does. */
async function refusal(url) {
  const stop = new AbortController();
  let answer = null;
  try { answer = await fetch(url, { signal: stop.signal }); } catch { return { connection: "lost" }; }
  if (answer.status === 401) return { connection: "signed-out" };
  const error = answer.ok ? null : await answered(answer).catch((found) => ({ problem: found.problem ?? found.message, hint: found.hint }));
  stop.abort(); // or it would stay open
  return { connection: "connecting", error };
}

function empty() {
  return { rows: new Map(), trouble: null, complete: false, version: 0, at: 0 };
}

/** The JSON answer of an endpoint. An error has `problem` and `hint`. */
export async function get(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null));
  return answered(await fetch(query.size ? `${path}?${query}` : path));
}

export async function post(path, body) {
  return answered(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

async function answered(response) {
  if (response.status === 204) return null;
  const body = await response.json().catch(() => ({ error: { problem: `The dashboard answered ${response.status}.`, hint: "" } }));
  if (!response.ok) throw Object.assign(new Error(body.error?.problem), body.error);
  return body;
}
