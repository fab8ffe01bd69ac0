// The list of cases of a report, and one case at a time. The address keeps what is shown:
// `#filter=outcome:failed&sort=-score&case=17`.
import { bind, showHelp } from "./keys.js";
import { byId, make, visible } from "./elements.js";
import { counted, duration, fixed, money, whole } from "./numbers.js";
import { FilterMistake, folding, matcher, parseFilter } from "./case_filter.js";
import { readTable } from "./report_data.js";
import { search } from "./case_search.js";
import { CaseGrid } from "./case_grid.js";
import { badge, drawCase, standing } from "./case_view.js";

/** Chips: a label, the filter that it sets, and what it counts. */
const CHIPS = [
  ["All", "", "all"],
  ["Failed", "outcome:failed", "failed"],
  ["Errored", "outcome:errored", "errored"],
  ["Regressed", "changed:regressed", "regressed"],
  ["Fixed", "changed:fixed", "fixed"],
  ["Flaky", "flaky", "flaky"],
  ["Not comparable", "changed:not-comparable", "not-comparable"],
  ["Passed", "outcome:passed", "passed"],
  ["Skipped", "outcome:skipped", "skipped"],
];
const TYPING_MS = 120;

/** Everything is ready before the page shows it. */
async function start() {
  const table = await readTable();
  new Report(table).start();
}

class Report {
  /** @param {import("./report_data.js").Table} table */
  constructor(table) {
    this.table = table;
    this.fold = folding(table.meta.folded);
    this.state = { filter: "", sort: "", group: 0, case: -1 };
    /** @type {AbortController | null} */
    this.searching = null;
    /** @type {Map<string, Uint8Array>} */
    this.found = new Map();
    /** @type {Map<string, Uint32Array>} */
    this.orders = new Map();
    this.input = /** @type {HTMLInputElement} */ (byId("filter"));
    this.status = byId("status");
    this.grid = new CaseGrid(byId("grid"), gridColumns(table), {
      open: (row) => this.change({ case: table.columns.position[row] }),
      sort: (key) => this.change({ sort: this.state.sort === `-${key}` ? key : this.state.sort === key ? "" : `-${key}` }),
    });
    this.places = new Map(Array.from({ length: table.count }, (_, row) => [table.columns.position[row], row]));
    /** What the list showed last, so that going back does not search again. */
    this.listed = "";
    this.drawn = 0;
  }

  start() {
    byId("cases").hidden = false;
    const plain = document.getElementById("failures");
    if (plain !== null) plain.hidden = true;
    for (const link of document.querySelectorAll("[data-group]")) /** @type {HTMLElement} */ (link).hidden = false;
    this.bindKeys();
    byId("filter-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.change({ filter: this.input.value });
      this.grid.grid.focus();
    });
    let typing = 0;
    this.input.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.change({ filter: this.input.value }, false), TYPING_MS);
    });
    byId("stop").addEventListener("click", () => this.searching?.abort());
    addEventListener("hashchange", () => this.show());
    this.show();
    document.documentElement.dataset.ready = "true";
  }

  bindKeys() {
    bind("j", "Next case", () => this.move(1));
    bind("k", "Previous case", () => this.move(-1));
    bind("Enter", "Open the case", () => this.open());
    bind("/", "Filter the cases", () => this.filterCases());
    bind("u", "Back to the list", () => this.change({ case: -1 }));
    bind("?", "Show the keys", showHelp);
    byId("help").addEventListener("click", showHelp);
    byId("back").addEventListener("click", () => this.change({ case: -1 }));
    byId("next").addEventListener("click", () => this.move(1));
    byId("previous").addEventListener("click", () => this.move(-1));
  }

  open() {
    const row = this.grid.rows[this.grid.current];
    const active = document.activeElement;
    if (active instanceof HTMLElement && active.matches("a, button, summary")) active.click();
    else if (this.state.case < 0 && row !== undefined) this.change({ case: this.table.columns.position[row] });
  }

  filterCases() {
    if (this.state.case >= 0) this.change({ case: -1 });
    this.input.focus();
    this.input.select();
  }

  /** @param {number} step */
  move(step) {
    if (this.state.case < 0) {
      this.grid.select(this.listedBefore ? this.grid.current + step : this.grid.current);
      this.listedBefore = true;
      byId("cases").scrollIntoView({ block: "nearest" });
      return;
    }
    const index = this.grid.current + step;
    if (index < 0 || index >= this.grid.rows.length) return;
    this.grid.current = index;
    this.change({ case: this.table.columns.position[this.grid.rows[index]] });
  }

  /**
   * Changes what is shown, and the address with it.
   * @param {Partial<typeof this.state>} changes
   * @param {boolean} [remember] as a step to go back to
   */
  change(changes, remember = true) {
    const next = { ...this.state, ...changes };
    const parts = new URLSearchParams();
    if (next.filter) parts.set("filter", next.filter);
    if (next.group) parts.set("group", String(next.group));
    if (next.sort) parts.set("sort", next.sort);
    if (next.case >= 0) parts.set("case", String(next.case));
    const address = `#${parts}`;
    if (address === location.hash || (address === "#" && !location.hash)) return;
    if (remember) location.hash = address;
    else {
      history.replaceState(null, "", address);
      this.show();
    }
  }

  readState() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const number = (/** @type {string} */ name, /** @type {number} */ none) =>
      /^\d{1,15}$/.test(parts.get(name) ?? "") ? Number(parts.get(name)) : none;
    this.state = {
      filter: parts.get("filter") ?? "",
      sort: parts.get("sort") ?? "",
      group: number("group", 0),
      case: number("case", -1),
    };
  }

  async show() {
    this.readState();
    const { filter, sort, group } = this.state;
    if (this.input.value !== filter && document.activeElement !== this.input) this.input.value = filter;
    const wanted = JSON.stringify([filter, sort, group]);
    if (wanted !== this.listed && (await this.list())) this.listed = wanted;
    await this.showCase();
    dispatchEvent(new Event("report-shown"));
  }

  /** Shows the cases that match; false if that was stopped. */
  async list() {
    const { filter, sort, group } = this.state;
    this.searching?.abort();
    const searching = (this.searching = new AbortController());
    let terms;
    try {
      terms = parseFilter(filter, this.fold);
    } catch (error) {
      if (!(error instanceof FilterMistake)) throw error;
      this.say(error.message, true);
      return false;
    }
    const texts = terms.filter((term) => term.field === "text").map((term) => String(term.values[0]));
    if (!(await this.searchFor(texts, searching.signal))) return false;
    const matches = matcher(terms, this.table, this.found);
    const groups = this.table.columns.group;
    const rows = this.order(sort).filter((row) => (group === 0 || groups[row] === group) && matches(row));
    this.grid.current = 0;
    this.listedBefore = false;
    this.grid.show(rows);
    this.grid.showOrder(sort.replace(/^-/, ""), sort.startsWith("-"));
    this.drawChips(terms);
    const all = counted(this.table.count, "case");
    const few = rows.length < this.table.count ? `${whole(rows.length)} of ${all} shown.` : `${all}.`;
    const unread = texts.length ? this.unread() : "";
    this.say(`${few}${unread}`, false);
    return true;
  }

  /** All rows in an order, which is computed once. @param {string} sort */
  order(sort) {
    const known = this.orders.get(sort);
    if (known !== undefined) return known;
    const order = sortedRows(sort, this.table);
    this.orders.set(sort, order);
    return order;
  }

  /** Which texts cannot be searched. */
  unread() {
    const { main, rest } = this.table.meta.left;
    const left = main + rest;
    return left ? ` Of ${counted(left, "case")} only the id and the first reason are searched: details are not in this file.` : "";
  }

  /** @param {string[]} texts @param {AbortSignal} signal */
  async searchFor(texts, signal) {
    const missing = [...new Set(texts)].filter((text) => !this.found.has(text));
    if (missing.length === 0) return true;
    const bar = /** @type {HTMLProgressElement} */ (byId("progress"));
    const box = byId("search");
    bar.value = 0;
    box.hidden = false;
    const progress = (/** @type {number} */ share) => (bar.value = share);
    const found = await search(this.table, missing, this.fold, progress, signal);
    if (signal !== this.searching?.signal) return false;
    box.hidden = true;
    if (found === null) {
      this.say("The search was stopped.", true);
      return false;
    }
    // Only the texts of this filter are kept: there may be as many as letters that were typed.
    this.found = new Map([...this.found].filter(([text]) => texts.includes(text)).concat([...found]));
    return true;
  }

  /** @param {string} text @param {boolean} isProblem */
  say(text, isProblem) {
    this.status.textContent = text;
    this.status.className = isProblem ? "problem" : "hint";
  }

  /** @param {import("./case_filter.js").Term[]} terms */
  drawChips(terms) {
    const { filter, group } = this.state;
    const isChip = (/** @type {import("./case_filter.js").Term} */ term) =>
      ["outcome", "changed", "flaky"].includes(term.field);
    const chosen = terms.filter(isChip).map((term) => filter.slice(term.start, term.end)).join(" ");
    const others = terms.filter((term) => !isChip(term)).map((term) => filter.slice(term.start, term.end));
    const chips = CHIPS.filter(([, set, counts]) => !set || this.table.meta.counts[counts]).map(([label, set, counts]) => {
      const chip = this.chip([...others, set].filter(Boolean).join(" "), group, label, this.table.meta.counts[counts]);
      if (chosen === set) chip.setAttribute("aria-current", "true");
      return chip;
    });
    const reason = this.table.meta.groups.find((one) => one.number === group);
    if (reason !== undefined) {
      const chip = this.chip(filter, 0, `reason: ${reason.reason.slice(0, 60)} ✕`, reason.cases);
      chip.title = "Show cases with other reasons too";
      chip.setAttribute("aria-current", "true");
      chips.push(chip);
    }
    byId("chips").replaceChildren(...chips);
  }

  /** @param {string} filter @param {number} group @param {string} label @param {number} count */
  chip(filter, group, label, count) {
    const chip = /** @type {HTMLAnchorElement} */ (make("a.chip", `${label} `, make("b", whole(count))));
    const parts = new URLSearchParams();
    if (filter) parts.set("filter", filter);
    if (group) parts.set("group", String(group));
    if (this.state.sort) parts.set("sort", this.state.sort);
    chip.href = `#${parts}`;
    return chip;
  }

  async showCase() {
    const { state, table } = this;
    const row = this.places.get(state.case);
    const one = byId("case");
    const isOpen = state.case >= 0;
    if (!isOpen) {
      if (!one.hidden) {
        one.hidden = true;
        byId("overview").hidden = false;
        this.grid.select(this.grid.current);
        byId("cases").scrollIntoView();
        this.grid.grid.focus({ preventScroll: true });
      }
      return;
    }
    const drawn = ++this.drawn;
    const details = row === undefined ? null : await table.detailsOf(row);
    if (drawn !== this.drawn) return; // another case was opened
    const content = byId("case-content");
    if (row === undefined) content.replaceChildren(make("p.problem", `This report has no case at position ${state.case}.`));
    else content.replaceChildren(...drawCase(table, row, details));
    const index = this.grid.rows[this.grid.current] === row ? this.grid.current : Array.prototype.indexOf.call(this.grid.rows, row);
    if (index >= 0) this.grid.current = index;
    byId("case-place").textContent = index >= 0 ? `case ${whole(index + 1)} of ${whole(this.grid.rows.length)}` : "not in the list";
    byId("overview").hidden = true;
    one.hidden = false;
    scrollTo(0, 0);
    byId("main").focus({ preventScroll: true });
  }
}

/**
 * @param {import("./report_data.js").Table} table
 * @returns {import("./case_grid.js").GridColumn[]}
 */
function gridColumns(table) {
  const { id, position, why, score, tokens, cost, latency, kind } = table.columns;
  /** @param {string} text */
  const plain = (text) => (/** @type {HTMLElement} */ cell) => {
    cell.textContent = cell.title = visible(text);
  };
  /** @param {number | null} value @param {(value: number) => string} form */
  const number = (value, form) => (value === null ? "" : form(value));
  return [
    { key: "outcome", label: "Outcome", classes: "outcome", sorted: true,
      draw: (row, cell) => cell.replaceChildren(badge(...standing(table, row))) },
    { key: "id", label: "Case", classes: "name", sorted: true,
      draw: (row, cell) => {
        const link = /** @type {HTMLAnchorElement} */ (make("a", id[row]));
        link.href = `#case=${position[row]}`;
        link.tabIndex = -1;
        link.title = visible(id[row]);
        cell.replaceChildren(link);
      } },
    { key: "why", label: "Why", classes: "why", sorted: false, draw: (row, cell) => plain(why[row])(cell) },
    { key: "tags", label: "Tags", classes: "tags", sorted: false,
      draw: (row, cell) => cell.replaceChildren(...table.kinds[kind[row]].tags.map((tag) => make("span.tag", tag))) },
    { key: "score", label: "Score", classes: "number", sorted: true,
      draw: (row, cell) => (cell.textContent = number(score[row], (value) => fixed(value, 2))) },
    { key: "tokens", label: "Tokens", classes: "number optional", sorted: true,
      draw: (row, cell) => (cell.textContent = number(tokens[row], whole)) },
    { key: "cost", label: "Cost", classes: "number optional", sorted: true,
      draw: (row, cell) => (cell.textContent = number(cost[row], money)) },
    { key: "latency", label: "Time", classes: "number", sorted: true,
      draw: (row, cell) => (cell.textContent = number(latency[row], duration)) },
  ];
}

/**
 * All rows in an order; those without a value are last in both directions, others of the same
 * value in the order of the run.
 * @param {string} sort
 * @param {import("./report_data.js").Table} table
 */
function sortedRows(sort, table) {
  const rows = Uint32Array.from({ length: table.count }, (_, row) => row);
  const key = sort.replace(/^-/, "") || "outcome";
  const { score, tokens, cost, latency } = table.columns;
  const column = { outcome: ranks(table), id: table.idRanks(), score, tokens, cost, latency }[key];
  if (column === undefined) return rows;
  const sign = sort.startsWith("-") ? -1 : 1;
  const keys = Float64Array.from(column, (value) => (value === null ? Infinity : sign * value));
  return rows.sort((one, other) => keys[one] - keys[other] || one - other);
}

/**
 * What should be looked at first: regressions, failures, errors, flaky cases, new passes.
 * @param {import("./report_data.js").Table} table
 */
function ranks(table) {
  const order = ["regressed", "failed", "errored", "flaky", "fixed", "passed", "skipped"];
  return Uint8Array.from({ length: table.count }, (_, row) => {
    const rank = order.indexOf(standing(table, row)[0]);
    return rank < 0 ? order.length : rank;
  });
}

start().catch((error) => {
  const status = document.getElementById("script-problem");
  if (status === null) throw error;
  status.hidden = false;
  status.textContent = `The list of all cases cannot be shown: ${error}`;
});
