// One case of a report: why it did not pass, question and answer, checks, calls, the baseline.
import { make } from "./elements.js";

/** @typedef {Record<string, string>} Names */
/** @type {Names} */
const SIGNS = { passed: "✓", failed: "✕", errored: "!", skipped: "-", flaky: "~", regressed: "✕", fixed: "✓" };
/** @type {Names} */
const TONES = { passed: "better", failed: "worse", errored: "errored", skipped: "" };
/** @type {Names} */
const CHECK_OUTCOMES = { pass: "passed", borderline: "flaky", fail: "failed", errored: "errored", skipped: "skipped" };
/** @type {Names} */
const CALLS = { "=": "same", "~": "differs", "-": "missing", "+": "unexpected" };

/** An outcome with its sign. @param {string} outcome @param {string} [label] */
export function badge(outcome, label) {
  const sign = make("span", SIGNS[outcome] ?? "·");
  sign.setAttribute("aria-hidden", "true");
  return make(`span.badge.${outcome}`, sign, ` ${label ?? outcome}`);
}

/**
 * What a row says of its outcome, and the name of it for colour and sign.
 * @param {import("./report_data.js").Table} table
 * @param {number} row
 * @returns {[string, string]}
 */
export function standing(table, row) {
  const { outcome, changed, passes, judged } = table.columns;
  const name = table.outcomes[outcome[row]];
  const change = table.changes[changed[row]];
  if (change === "regressed" || change === "fixed") return [change, change];
  if (table.isFlaky(row)) return ["flaky", `flaky, ${passes[row]} of ${judged[row]} passed`];
  return [name, name];
}

/**
 * @param {import("./report_data.js").Table} table
 * @param {number} row
 * @param {any} details null if they are not in this file
 * @returns {HTMLElement[]}
 */
export function drawCase(table, row, details) {
  const { id, outcome, why } = table.columns;
  const [name] = standing(table, row);
  const kind = table.kinds[table.columns.kind[row]];
  const word = make("em", `${name[0].toUpperCase()}${name.slice(1)}:`);
  const title = make("h1", word, " ", make("span", id[row]));
  const said = make("div", title);
  const box = make("section.verdict", said);
  const tone = TONES[table.outcomes[outcome[row]]];
  if (tone) box.classList.add(tone);
  if (details === null) {
    if (why[row]) said.append(make("p", why[row]));
    said.append(make("p.muted", "The details of this case are not in this file, which would be too large with them."));
    box.append(pairs([["Suite", kind.suite], ["Tags", kind.tags.join(", ")]]));
    return [box];
  }
  for (const text of [details.description, details.standing]) if (text) said.append(make("p", text));
  if (details.error) said.append(make("p", details.error));
  for (const reason of details.reasons ?? []) said.append(make("p.wrap", reason));
  const facts = details.source ? [["Source", details.source], ...details.facts] : details.facts;
  box.append(pairs(facts));
  return [
    box,
    ...(details.checks ?? []).flatMap(drawTrajectories),
    columns(drawConversation(details), drawChecks(details)),
    drawBaseline(details, table.meta.base),
    drawCalls(details),
    drawAttempts(details),
    details.leftOut ? make("p.muted", `${details.leftOut} further entries of long lists are not in this file.`) : null,
  ].filter((part) => part !== null);
}

/** @param {string} title @param {string | null} note @param {...HTMLElement} inside */
function panel(title, note, ...inside) {
  return make("section.panel", make("h2", title, note ? make("small", note) : null), ...inside);
}

/** @param {HTMLElement | null} one @param {HTMLElement | null} other */
function columns(one, other) {
  return one === null || other === null ? (one ?? other) : make("div.columns", one, other);
}

/** @param {[string, string][]} entries */
function pairs(entries) {
  const shown = entries.filter(([, value]) => value);
  return make("dl.facts", ...shown.map(([label, value]) => make("div", make("dt", label), make("dd", value))));
}

/** @param {any} details */
function drawConversation(details) {
  /** @type {[string, string, string][]} */
  const messages = (details.question ?? []).map((/** @type {string[]} */ [role, text]) => [role, text, ""]);
  for (const [label, text] of details.expected ?? []) messages.push([`expected ${label}`, text, "muted"]);
  if (details.answer !== undefined) messages.push([details.answerTitle || "Answer", details.answer, ""]);
  if (messages.length === 0) return null;
  return panel("Conversation", null, ...messages.map(([role, text, tone]) => {
    const shown = make("div.wrap", text || "(empty)");
    if (tone) shown.classList.add(tone);
    return make("div.message", make("span", role), shown);
  }));
}

/** @param {any} details */
function drawChecks(details) {
  const checks = details.checks ?? [];
  if (checks.length === 0) return null;
  const passed = checks.filter((/** @type {any} */ check) => check.kind === "pass").length;
  return panel("Checks", `${passed} of ${checks.length} passed`, ...checks.map(drawCheck));
}

/** @param {any} check */
function drawCheck(check) {
  const said = make("div", make("b", check.name), " ", make("span.muted", check.verdict));
  if (check.criterion) said.append(make("p.muted.wrap", check.criterion));
  for (const miss of check.misses ?? []) said.append(make("p.tone-worse.wrap", `✕ ${miss}`));
  for (const hit of check.hits ?? []) said.append(make("p.muted.wrap", `✓ ${hit}`));
  if (check.reasoning) said.append(make("p.wrap", check.judge ? `${check.judge}: ` : "", `“${check.reasoning}”`));
  return make("div.message.check", badge(CHECK_OUTCOMES[check.kind] ?? "skipped", ""), said);
}

/** @param {any} check @returns {HTMLElement[]} */
function drawTrajectories(check) {
  return (check.rows ?? []).map((/** @type {any} */ [name, rows]) => {
    const head = make("tr", th("Expected"), th(make("span.hidden", "Difference")), th("Actual"));
    const body = make("tbody", ...rows.map(drawCallRow));
    const table = make("table.calls", make("thead", head), body);
    return panel("Tool calls", `${name}: expected and actual, aligned`, table);
  });
}

/** @param {any} row */
function drawCallRow(row) {
  const sign = make("td.sign", row.sign === "-" ? "−" : row.sign);
  const expected = make("td", ...pieces(row.expected), row.sign === "-" ? make("small", "not called") : null);
  const actual = make("td", ...pieces(row.actual), row.note ? make("small", row.note) : null);
  return make(`tr.${CALLS[row.sign] ?? "same"}`, expected, sign, actual);
}

/** @param {[string, boolean][]} given */
function pieces(given) {
  return (given ?? []).map(([text, differs]) => (differs ? make("mark", text) : text));
}

/** @param {string | Node} inside */
function th(inside) {
  const cell = make("th", inside);
  cell.setAttribute("scope", "col");
  return cell;
}

/** @param {any} details @param {string} base */
function drawBaseline(details, base) {
  const { before, answer, diff } = details;
  if (!diff && (before === undefined || before === null)) return null;
  const same = before === answer;
  const sides = make(
    "div.two",
    make("div", make("h3", base), make("div.wrap", ...(diff ? words(diff, "-") : [before || "(empty)"]))),
    make("div", make("h3", "This run"), make("div.wrap", ...(diff ? words(diff, "+") : [answer || "(empty)"]))),
  );
  return panel("Against the baseline", same ? "the answer is the same" : "the answers", sides);
}

/**
 * The words of one side; those that the other lacks are marked.
 * @param {[string, string][]} diff
 * @param {string} side
 */
function words(diff, side) {
  return diff
    .filter(([sign]) => sign === "=" || sign === side)
    .map(([sign, text]) => (sign === "=" ? text : make(side === "-" ? "del" : "ins", text)));
}

/** @param {any} details */
function drawCalls(details) {
  const calls = details.calls ?? [];
  if (calls.length === 0) return null;
  return panel("What the agent called", null, ...calls.map((/** @type {string[]} */ [text, ending], /** @type {number} */ index) =>
    make("div.message", make("span", `${index + 1}`), make("div", make("div.mono.wrap", text), make("small.muted.wrap", ending))),
  ));
}

/** @param {any} details */
function drawAttempts(details) {
  const attempts = details.attempts ?? [];
  if (attempts.length === 0) return null;
  return panel("Attempts", details.attempted, ...attempts.map((/** @type {any} */ one) =>
    make("div.message", make("span", one.title), make("div", badge(one.outcome), " ", make("small.muted", one.facts), make("div.wrap", one.answer))),
  ));
}
