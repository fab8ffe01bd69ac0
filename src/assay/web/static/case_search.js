// Searches the texts of cases: those of a row, and of its details if they are in this file.
import { readText } from "./report_data.js";

/** How long a search may block the page at once. */
const SLICE_MS = 40;

/**
 * Which rows have each text, which is folded; null if it was stopped.
 * @param {import("./report_data.js").Table} table
 * @param {string[]} texts
 * @param {(text: string) => string} fold
 * @param {(share: number) => void} progress
 * @param {AbortSignal} signal
 * @returns {Promise<Map<string, Uint8Array> | null>}
 */
export async function search(table, texts, fold, progress, signal) {
  const found = new Map(texts.map((text) => [text, new Uint8Array(table.count)]));
  /** @param {number} row @param {string} text */
  const note = (row, text) => {
    for (const [wanted, rows] of found) if (text.includes(wanted)) rows[row] = 1;
  };
  /** @type {Map<string, [number, number][]>} */
  const chunks = new Map();
  let last = performance.now();
  const { id, why } = table.columns;
  for (let row = 0; row < table.count; row++) {
    note(row, fold(`${id[row]}\n${why[row]}`));
    const place = table.placeOf(row);
    if (place === null) continue;
    const rows = chunks.get(place.chunk);
    if (rows === undefined) chunks.set(place.chunk, [[row, place.index]]);
    else rows.push([row, place.index]);
  }
  const written = texts.map((text) => JSON.stringify(text).slice(1, -1));
  let done = 0;
  for (const [chunk, rows] of chunks) {
    if (signal.aborted) return null;
    const text = await readText(chunk);
    // What the whole chunk does not have, none of its cases has; control characters are escaped.
    const folded = fold(text);
    if (written.some((one) => one.includes("\\u") || folded.includes(one))) {
      const details = JSON.parse(text);
      for (const [row, index] of rows) note(row, fold(textOf(id[row], details[index])));
    }
    done += 1;
    if (performance.now() - last > SLICE_MS) {
      progress(done / chunks.size);
      await new Promise((resolve) => setTimeout(resolve));
      last = performance.now();
    }
  }
  return found;
}

/** All that is searched of a case. @param {string} id @param {any} details */
function textOf(id, details) {
  const checks = details.checks ?? [];
  return [
    id,
    details.description,
    ...(details.question ?? []).map((/** @type {string[]} */ pair) => pair[1]),
    details.answer,
    details.error,
    ...(details.reasons ?? []),
    ...checks.flatMap((/** @type {any} */ check) => [check.reasoning, ...(check.misses ?? [])]),
    ...(details.attempts ?? []).map((/** @type {any} */ attempt) => attempt.answer),
  ]
    .filter(Boolean)
    .join("\n");
}
