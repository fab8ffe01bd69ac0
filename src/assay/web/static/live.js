// A run in progress: its numbers are replaced as they change. All tabs of a browser share one event
// stream: the tab that holds a lock reads it, and tells the others. Browsers without locks, as on plain
// http from another machine, have one stream for each tab.

/** @typedef {{id: string, outcome: string, address: string}} Failure */
/** @typedef {{run: string, done: number, planned: number | null, texts: Record<string, string>, failures: Failure[]}} Live */
/** @typedef {{kind: "live" | "finished", live: Live} | {kind: "watch", run: string} | {kind: "leader"}} Message */

const SIGNS = { failed: "\u2715", errored: "!" };
/** The parts of the page about each run. */
const own = new Map();
for (const element of document.querySelectorAll("[data-run]")) {
  own.set(/** @type {HTMLElement} */ (element).dataset.run ?? "", element);
}

/** @param {Live} live */
function show(live) {
  const root = own.get(live.run);
  if (root === undefined) return;
  for (const element of root.querySelectorAll("[data-live]")) {
    const text = live.texts[element.dataset.live ?? ""];
    if (text !== undefined && element.textContent !== text) element.textContent = text;
  }
  const bar = root.querySelector("progress");
  if (bar !== null && live.planned) {
    bar.max = live.planned;
    bar.value = live.done;
  }
  const list = /** @type {HTMLElement | null} */ (document.querySelector("[data-failures]"));
  if (list?.dataset.failures === live.run && live.failures.length > 0) list.replaceChildren(...live.failures.map(item));
}

/** @param {Failure} failure */
function item(failure) {
  const badge = document.createElement("span");
  badge.className = `badge ${failure.outcome}`;
  const sign = document.createElement("span");
  sign.setAttribute("aria-hidden", "true");
  sign.textContent = SIGNS[/** @type {"failed"} */ (failure.outcome)] ?? "";
  badge.append(sign, ` ${failure.outcome}`);
  const link = document.createElement("a");
  link.href = failure.address;
  link.textContent = failure.id;
  const entry = document.createElement("li");
  entry.append(badge, " ", link);
  return entry;
}

/** @param {string} run */
function end(run) {
  if (own.has(run)) location.reload();
}

/**
 * @param {Set<string>} runs
 * @param {(message: Message) => void} tell
 */
function stream(runs, tell) {
  const source = new EventSource(`/live?runs=${[...runs].join(",")}`);
  source.addEventListener("live", (event) => {
    const live = JSON.parse(event.data);
    show(live);
    tell({ kind: "live", live });
  });
  source.addEventListener("finished", (event) => {
    const live = JSON.parse(event.data);
    runs.delete(live.run);
    if (runs.size === 0) source.close(); // else the browser would connect again
    tell({ kind: "finished", live });
    end(live.run);
  });
  return source;
}

/** @param {BroadcastChannel} channel */
function lead(channel) {
  const runs = new Set(own.keys());
  /** @param {Message} message */
  const tell = (message) => channel.postMessage(message);
  let source = stream(runs, tell);
  channel.addEventListener("message", (event) => {
    if (event.data.kind !== "watch" || runs.has(event.data.run)) return;
    runs.add(event.data.run);
    source.close();
    source = stream(runs, tell);
  });
  channel.postMessage({ kind: "leader" });
}

/** @param {BroadcastChannel} channel */
function watch(channel) {
  for (const run of own.keys()) channel.postMessage({ kind: "watch", run });
}

if (navigator.locks !== undefined && "BroadcastChannel" in window) {
  const channel = new BroadcastChannel("assay-live");
  channel.addEventListener("message", (event) => {
    if (event.data.kind === "live") show(event.data.live);
    if (event.data.kind === "finished") end(event.data.live.run);
    if (event.data.kind === "leader") watch(channel);
  });
  watch(channel);
  // Held until the tab is closed or left; then another tab leads.
  navigator.locks.request("assay-live", () => {
    lead(channel);
    return new Promise(() => {});
  });
} else {
  stream(new Set(own.keys()), () => {});
}
