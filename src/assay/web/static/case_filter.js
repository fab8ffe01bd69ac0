// The filter language of cases, the same as `assay.model.case_filter`: `outcome:failed tag:billing`.
// A test compares both on random filters and cases.

/** @type {Record<string, string[]>} */
const CHOICES = {
  outcome: ["passed", "failed", "errored", "skipped"],
  changed: ["regressed", "fixed", "still-failing", "added", "not-comparable", "not-judged"],
};
/** @type {Record<string, string>} */
const NUMBERS = { score: "a number from 0 to 1", cost: "US dollars", latency: "milliseconds" };
const FIELDS = ["id", "suite", "tag", "evaluator", "outcome", "changed", "flaky", "score", "cost", "latency"];
/** @type {Record<string, string>} */
const OPERATORS = {
  AND: "leave it out, as all terms must match",
  OR: "separate alternatives by commas, as in tag:a,b",
  NOT: "write - before the term, as in -tag:a",
};
const MAX_LENGTH = 2000;
const MAX_TEXTS = 8;

const SPACES = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const SPACE = new RegExp(`[${SPACES}]`);
const FIELD = /([\p{L}\p{Nl}\p{No}_][\p{L}\p{N}_-]*)(:|<=|>=|<|>|=)/uy;
const QUOTED = /"((?:[^"\\]|\\.)*)"/sy;
const UNQUOTED = new RegExp(`[^${SPACES},"]+`, "y");
const WORD = new RegExp(`[^${SPACES}"]+`, "y");
const NUMBER = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)([eE][+-]?\d+(_\d+)*)?$/;
/** @type {Record<string, (a: number, b: number) => boolean>} */
const COMPARE = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  "=": (a, b) => a === b,
  ">=": (a, b) => a >= b,
  ">": (a, b) => a > b,
};

/**
 * A condition. `field` is `text` for a text to search for; a flag has no values.
 * @typedef {{field: string, op: string, values: (string | number)[], negated: boolean,
 *   start: number, end: number}} Term
 */

/** A mistake in a filter; `column` counts from 1. */
export class FilterMistake extends Error {
  /** @param {number} column @param {string} found @param {string} hint */
  constructor(column, found, hint = "") {
    super(`column ${column}: ${found}${hint ? `; ${hint}` : ""}`);
    this.column = column;
  }
}

/**
 * Reads a filter; throws the first FilterMistake.
 * @param {string} text
 * @param {(text: string) => string} fold
 * @returns {Term[]}
 */
export function parseFilter(text, fold) {
  if ([...text].length > MAX_LENGTH) {
    throw new FilterMistake(1, `the filter is longer than ${MAX_LENGTH} characters`);
  }
  /** @type {Term[]} */
  const terms = [];
  let place = 0;
  let texts = 0;

  /** @type {(at: number, found: string, hint?: string) => never} */
  const fail = (at, found, hint) => {
    throw new FilterMistake([...text.slice(0, at)].length + 1, found, hint);
  };
  /** @param {RegExp} pattern */
  const take = (pattern) => {
    pattern.lastIndex = place;
    const found = pattern.exec(text);
    if (found !== null) place = pattern.lastIndex;
    return found;
  };
  const quoted = () => {
    if (text[place] !== '"') return null;
    const found = take(QUOTED);
    if (found === null) fail(place, "the quote is not closed");
    return found[1].replace(/\\(.)/gs, "$1");
  };
  /** @param {string} field */
  const value = (field) => {
    const found = quoted() ?? take(UNQUOTED)?.[0];
    return found ?? fail(place, `'${field}' needs a value`);
  };
  /** @param {string} field @param {string} op @param {number} at */
  const comparison = (field, op, at) => {
    if (op === ":") fail(at, `'${field}' is a number`, `compare it, as in ${field}>0.5`);
    const start = place;
    const written = trimmed(value(field));
    const number = NUMBER.test(written) ? Number(written.replaceAll("_", "")) : NaN;
    if (!Number.isFinite(number)) {
      fail(start, `expected ${NUMBERS[field]}, got '${written}'`, `as in ${field}>0.5`);
    }
    return [number];
  };
  /** @param {string} field */
  const values = (field) => {
    const found = [];
    for (;;) {
      const start = place;
      const one = value(field);
      const known = CHOICES[field];
      if (known !== undefined && !known.includes(one)) {
        fail(start, `${field} cannot be '${one}'`, nearest(one, known) || `known: ${known.join(", ")}`);
      }
      found.push(one);
      if (text[place] !== ",") return found;
      place += 1;
    }
  };
  /** @param {RegExpExecArray} head */
  const condition = (head) => {
    const [, field, op] = head;
    const start = head.index;
    if (field === "flaky") fail(start, "'flaky' has no value", "write flaky or -flaky");
    if (!FIELDS.includes(field)) {
      const hint = nearest(field, FIELDS) || `known: ${FIELDS.join(", ")}`;
      fail(start, `unknown field '${field}': put a text to search for in quotes`, hint);
    }
    const at = start + field.length;
    if (Object.hasOwn(NUMBERS, field)) return { field, op, values: comparison(field, op, at) };
    if (op !== ":") fail(at, `unexpected '${op}': expected '${field}:'`);
    return { field, op: ":", values: values(field) };
  };
  const word = () => {
    const start = place;
    let found = quoted();
    if (found === null) {
      found = take(WORD)?.[0] ?? fail(start, "expected a term after '-'");
      if (found === "flaky") return { field: found, op: ":", values: [] };
      checkWord(found, start);
    }
    if (found === "") fail(start, "the text to search for is empty");
    texts += 1;
    if (texts > MAX_TEXTS) {
      fail(start, `more than ${MAX_TEXTS} texts to search for`, "put a text of several words in quotes");
    }
    return { field: "text", op: ":", values: [fold(found)] };
  };
  /** @param {string} found @param {number} start */
  const checkWord = (found, start) => {
    const search = `search for the text with "${found}"`;
    if (FIELDS.includes(found)) {
      const form = Object.hasOwn(NUMBERS, found) ? `${found}>0.5` : `${found}:VALUE`;
      fail(start, `'${found}' needs a value`, `write ${form}, or ${search}`);
    }
    if (Object.hasOwn(OPERATORS, found)) {
      fail(start, `'${found}' is not an operator`, `${OPERATORS[found]}, or ${search}`);
    }
    const field = /^[(!]([a-z]+)[:<>=]/.exec(found)?.[1];
    if (field !== undefined && FIELDS.includes(field)) {
      const instead = "all terms must match; write -tag:a for 'not', and tag:a,b for 'or'";
      fail(start, `unexpected '${found[0]}' before '${field}'`, instead);
    }
    const hint = nearest(found, ["flaky"], 0.85);
    if (hint) fail(start, `unknown term '${found}'`, `${hint} Or ${search}`);
  };

  for (;;) {
    while (place < text.length && SPACE.test(text[place])) place += 1;
    if (place >= text.length) return terms;
    const start = place;
    const negated = text[place] === "-";
    if (negated) place += 1;
    const head = take(FIELD);
    const term = head === null ? word() : condition(head);
    if (place < text.length && !SPACE.test(text[place])) {
      const found = String.fromCodePoint(text.codePointAt(place) ?? 0);
      fail(place, `unexpected '${found}': expected a space`);
    }
    terms.push({ ...term, negated, start, end: place });
  }
}

/**
 * A function that says whether the row with an index matches all terms.
 * @param {Term[]} terms
 * @param {import("./report_data.js").Table} table
 * @param {Map<string, Uint8Array>} found for each text, which rows have it
 * @returns {(row: number) => boolean}
 */
export function matcher(terms, table, found) {
  const tests = terms.map((term) => {
    const holds = condition_(term, table, found);
    return term.negated ? (/** @type {number} */ row) => !holds(row) : holds;
  });
  return (row) => tests.every((test) => test(row));
}

/**
 * @param {Term} term
 * @param {import("./report_data.js").Table} table
 * @param {Map<string, Uint8Array>} found
 * @returns {(row: number) => boolean}
 */
function condition_(term, table, found) {
  const { field, values } = term;
  if (field === "text") {
    const rows = found.get(String(values[0])) ?? new Uint8Array(table.count);
    return (row) => rows[row] === 1;
  }
  if (field === "flaky") return (row) => table.isFlaky(row);
  if (Object.hasOwn(NUMBERS, field)) {
    const column = table.columns[field];
    const compare = COMPARE[term.op];
    const limit = Number(values[0]);
    return (row) => column[row] !== null && compare(column[row], limit);
  }
  const globs = values.map((value) => glob(String(value)));
  /** @param {string} name */
  const matches = (name) => globs.some((test) => test(name));
  if (field === "id") return (row) => matches(table.columns.id[row]);
  if (field === "outcome" || field === "changed") {
    const names = field === "outcome" ? table.outcomes : table.changes;
    const wanted = names.map(matches);
    const column = table.columns[field];
    return (row) => wanted[column[row]] === true;
  }
  const key = field === "suite" ? "suites" : field === "tag" ? "tags" : "evaluators";
  const wanted = table.kinds.map((kind) => kind[key].some(matches));
  return (row) => wanted[table.columns.kind[row]];
}

/**
 * A function that says whether a name matches a pattern, in which `*` stands for any characters.
 * @param {string} pattern
 * @returns {(name: string) => boolean}
 */
function glob(pattern) {
  const parts = pattern.normalize("NFC").split("*");
  const first = parts[0];
  if (parts.length === 1) return (name) => name.normalize("NFC") === first;
  const last = parts[parts.length - 1];
  const middle = parts.slice(1, -1);
  return (given) => {
    const name = given.normalize("NFC");
    if (!name.startsWith(first) || name.length < first.length + last.length) return false;
    let place = first.length;
    const end = name.length - last.length;
    for (const part of middle) {
      const at = name.indexOf(part, place);
      if (at < 0 || at + part.length > end) return false;
      place = at + part.length;
    }
    return name.endsWith(last) && place <= end;
  };
}

/**
 * A function that brings texts into the form in which they are searched: upper and lower case are
 * the same. `exceptions` are characters whose case folding is not their lower case.
 * @param {Record<string, string>} exceptions
 * @returns {(text: string) => string}
 */
export function folding(exceptions) {
  const unusual = new RegExp(`[${Object.keys(exceptions).join("")}]`, "gu");
  return (text) => {
    if (/^[\x00-\x7f]*$/.test(text)) return text.toLowerCase();
    const lower = text.normalize("NFC").toLowerCase();
    return lower.replace(unusual, (found) => exceptions[found]).normalize("NFC");
  };
}

/** @param {string} text */
function trimmed(text) {
  return text.replace(new RegExp(`^[${SPACES}]+|[${SPACES}]+$`, "g"), "");
}

/**
 * A hint with the known name that is most similar, if one is similar enough.
 * @param {string} name @param {string[]} known @param {number} [cutoff]
 */
function nearest(name, known, cutoff = 0.6) {
  if ([...name].length > 60) return "";
  const folded = name.toLowerCase().replaceAll("-", "_");
  let best = cutoff;
  let hint = "";
  for (const one of known) {
    const similar = similarity(folded, one.replaceAll("-", "_"));
    if (similar >= best && (hint === "" || similar > best)) {
      best = similar;
      hint = `did you mean '${one}'?`;
    }
  }
  return hint;
}

/** The share of characters that two texts have in common, as Python's difflib counts it.
 * @param {string} one @param {string} other */
function similarity(one, other) {
  return (2 * common([...other], [...one])) / ([...one].length + [...other].length);
}

/** @param {string[]} one @param {string[]} other @returns {number} */
function common(one, other) {
  let [start, from, size] = [0, 0, 0];
  for (let i = 0; i < one.length; i++) {
    for (let j = 0; j < other.length; j++) {
      let same = 0;
      while (i + same < one.length && j + same < other.length && one[i + same] === other[j + same]) same++;
      if (same > size) [start, from, size] = [i, j, same];
    }
  }
  if (size === 0) return 0;
  const left = common(one.slice(0, start), other.slice(0, from));
  return left + size + common(one.slice(start + size), other.slice(from + size));
}
