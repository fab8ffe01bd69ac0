// The list of the cases of a run with any number of rows: only those in sight are in the page, the
// others are fetched as they come into sight. Without JavaScript, and on phones, the list has pages.
import { bind, unbind } from "./keys.js";

/**
 * @typedef {{address: string, sign: string, mark: string, label: string, id: string, source: string,
 *   why: string, tags: string[], score: string, cost: string, time: string}} Row
 */

const ROW_HEIGHT = 54; // as in assay.css
const AROUND = 15;
const CHUNK = 100;
// Browsers cannot draw elements that are much higher.
const MAX_ROWS = 300_000;

class VirtualList {
  /** @param {HTMLTableElement} table */
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0];
    this.total = Number(table.dataset.total);
    this.address = table.dataset.more ?? "";
    /** @type {Map<number, Row[]>} */
    this.chunks = new Map();
    /** @type {Set<number>} */
    this.asked = new Set();
    /** @type {Map<number, HTMLTableRowElement>} */
    this.drawn = new Map();
    this.active = this.wanted = -1;
    this.above = spacer();
    this.below = spacer();
    this.key = `assay-scroll ${location.pathname}${location.search}`;
  }

  start() {
    this.table.classList.add("virtual");
    this.table.classList.remove("stacked");
    this.table.setAttribute("aria-rowcount", String(this.total + 1));
    this.table.tHead?.rows[0].setAttribute("aria-rowindex", "1");
    const pager = this.table.closest("section")?.querySelector(".pager");
    pager?.remove();
    unbind("n");
    this.body.replaceChildren(this.above, this.below);
    this.draw();
    let waits = false;
    addEventListener("scroll", () => {
      if (waits) return;
      waits = true;
      requestAnimationFrame(() => {
        waits = false;
        this.draw();
      });
    }, { passive: true });
    addEventListener("resize", () => this.draw());
    addEventListener("pagehide", () => sessionStorage.setItem(this.key, String(scrollY)));
    this.body.addEventListener("focusin", (event) => {
      const row = /** @type {Element} */ (event.target).closest("tr");
      if (row?.dataset.at !== undefined) this.active = Number(row.dataset.at);
    });
    bind("j", "Next case", () => this.move(1));
    bind("k", "Previous case", () => this.move(-1));
    const before = Number(sessionStorage.getItem(this.key));
    if (before > 0 && performance.getEntriesByType("navigation")[0]?.toJSON().type === "back_forward") {
      scrollTo(0, before);
    }
  }

  /** Draws the rows that are in sight, and removes the others but the one with the focus. */
  draw() {
    const top = this.body.getBoundingClientRect().top;
    const first = clamp(Math.floor(-top / ROW_HEIGHT) - AROUND, 0, this.total);
    const last = clamp(Math.ceil((innerHeight - top) / ROW_HEIGHT) + AROUND, first, this.total);
    for (const [at, row] of this.drawn) {
      if (at < first || at >= last) {
        row.remove();
        this.drawn.delete(at);
      }
    }
    for (let at = first; at < last; at++) {
      const known = this.row(at);
      const old = this.drawn.get(at);
      if (old !== undefined && (old.dataset.known === "yes" || known === undefined)) continue;
      const row = element(at, known);
      if (old !== undefined) old.replaceWith(row);
      else this.place(at, row);
      this.drawn.set(at, row);
      if (at === this.active && known !== undefined && this.wanted === at) this.focus(at);
    }
    stand(this.above, 0, first);
    stand(this.below, last, this.total);
  }

  /**
   * @param {number} at
   * @param {HTMLTableRowElement} row
   */
  place(at, row) {
    let next = this.below;
    for (const [other, drawn] of this.drawn) {
      if (other > at && (next === this.below || other < Number(next.dataset.at))) next = drawn;
    }
    this.body.insertBefore(row, next);
  }

  /**
   * @param {number} at
   * @returns {Row | undefined} the row, if it is known; else it is asked for
   */
  row(at) {
    const chunk = Math.floor(at / CHUNK);
    const known = this.chunks.get(chunk);
    if (known === undefined && !this.asked.has(chunk)) this.ask(chunk);
    return known?.[at % CHUNK];
  }

  /** @param {number} chunk */
  async ask(chunk) {
    this.asked.add(chunk);
    try {
      const response = await fetch(`${this.address}&at=${chunk * CHUNK}`);
      if (!response.ok) throw new Error(`status ${response.status}`);
      this.chunks.set(chunk, (await response.json()).data);
      this.draw();
    } catch {
      // Asked again when the rows come into sight the next time.
      setTimeout(() => this.asked.delete(chunk), 1000);
    }
  }

  /** @param {number} step */
  move(step) {
    const at = clamp(this.active < 0 ? 0 : this.active + step, 0, this.total - 1);
    this.active = this.wanted = at;
    const top = this.body.getBoundingClientRect().top + at * ROW_HEIGHT;
    if (top < 0) scrollBy(0, top - ROW_HEIGHT);
    else if (top + ROW_HEIGHT > innerHeight) scrollBy(0, top + 2 * ROW_HEIGHT - innerHeight);
    this.draw();
    this.focus(at);
  }

  /** @param {number} at */
  focus(at) {
    const link = this.drawn.get(at)?.querySelector("a");
    link?.focus({ preventScroll: true });
    if (link) this.wanted = -1;
  }
}

/**
 * @param {number} at
 * @param {Row | undefined} known
 */
function element(at, known) {
  const row = document.createElement("tr");
  row.dataset.at = String(at);
  row.setAttribute("aria-rowindex", String(at + 2));
  row.dataset.known = known === undefined ? "no" : "yes";
  if (known === undefined) {
    const waiting = cell("muted", "\u2026");
    waiting.colSpan = 7;
    row.append(waiting);
    return row;
  }
  const badge = document.createElement("span");
  badge.className = `badge ${known.sign}`;
  const mark = document.createElement("span");
  mark.setAttribute("aria-hidden", "true");
  mark.textContent = known.mark;
  badge.append(mark, ` ${known.label}`);
  const link = document.createElement("a");
  link.href = known.address;
  link.textContent = known.id;
  const source = document.createElement("small");
  source.textContent = known.source;
  const why = document.createElement("div");
  why.className = "clamp";
  why.textContent = why.title = known.why;
  const tags = known.tags.map((name) => {
    const tag = document.createElement("span");
    tag.className = "tag";
    tag.textContent = name;
    return tag;
  });
  row.append(
    cell("", badge),
    cell("main", link, source),
    cell("why", why),
    cell("optional", ...tags),
    cell("number", known.score),
    cell("number optional", known.cost),
    cell("number", known.time),
  );
  return row;
}

/**
 * @param {string} name
 * @param {...(Node | string)} inside
 */
function cell(name, ...inside) {
  const made = document.createElement("td");
  if (name) made.className = name;
  made.append(...inside);
  return made;
}

function spacer() {
  const row = document.createElement("tr");
  row.className = "spacer";
  row.setAttribute("aria-hidden", "true");
  const inside = cell("");
  inside.colSpan = 7;
  row.append(inside);
  return row;
}

/**
 * Lets a row stand for all rows from the first up to the last, which are not drawn.
 * @param {HTMLTableRowElement} row
 * @param {number} first
 * @param {number} last
 */
function stand(row, first, last) {
  row.hidden = first === last;
  row.setAttribute("aria-rowindex", String(first + 2));
  row.cells[0].style.height = `${(last - first) * ROW_HEIGHT}px`;
}

/**
 * @param {number} value
 * @param {number} low
 * @param {number} high
 */
function clamp(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

const table = /** @type {HTMLTableElement | null} */ (document.querySelector("table[data-more]"));
if (table !== null) {
  const total = Number(table.dataset.total);
  const shown = table.tBodies[0].rows.length;
  const fits = !matchMedia("(max-width: 720px)").matches && total <= MAX_ROWS;
  if (shown < total && table.dataset.first === "0" && fits) new VirtualList(table).start();
}
