// Reads the data of a report: columns of all cases, and details in chunks.

/**
 * @typedef {{suite: string, suites: string[], tags: string[], evaluators: string[]}} Kind
 * @typedef {{runId: string, count: number, outcomes: string[], changes: string[], kinds: Kind[],
 *   groups: {number: number, reason: string, cases: number}[], columns: string[], chunk: number,
 *   chunks: {main: number, rest: number}, left: {main: number, rest: number},
 *   counts: Record<string, number>, folded: Record<string, string>, base: string}} Meta
 */

/** The cases of a report; a row is known by its index. */
export class Table {
  /** @param {Meta} meta @param {Record<string, any[]>} columns */
  constructor(meta, columns) {
    this.meta = meta;
    this.columns = columns;
    this.count = meta.count;
    this.kinds = meta.kinds;
    this.outcomes = meta.outcomes;
    this.changes = meta.changes;
  }

  /** The places of all ids in their order; equal ids have the same. */
  idRanks() {
    const { id } = this.columns;
    const order = Uint32Array.from({ length: this.count }, (_, row) => row);
    order.sort((one, other) => (id[one] < id[other] ? -1 : id[one] > id[other] ? 1 : one - other));
    const ranks = new Uint32Array(this.count);
    for (let place = 1; place < this.count; place++) {
      const isNew = id[order[place]] !== id[order[place - 1]];
      ranks[order[place]] = ranks[order[place - 1]] + (isNew ? 1 : 0);
    }
    return ranks;
  }

  /** @param {number} row */
  isFlaky(row) {
    const passes = this.columns.passes[row];
    return passes > 0 && passes < this.columns.judged[row];
  }

  /** Where the details of a row are; null if they are not in this file. @param {number} row */
  placeOf(row) {
    const number = this.columns.details[row];
    if (number < 0) return null;
    const name = number % 2 ? "rest" : "main";
    const chunk = Math.floor(number / 2 / this.meta.chunk);
    if (chunk >= this.meta.chunks[name]) return null;
    return { chunk: `${name}-${chunk}`, index: Math.floor(number / 2) % this.meta.chunk };
  }

  /** The details of a row; null if they are not in this file. @param {number} row */
  async detailsOf(row) {
    const place = this.placeOf(row);
    return place === null ? null : (await readBlock(place.chunk))[place.index];
  }
}

/** @returns {Promise<Table>} */
export async function readTable() {
  const meta = /** @type {Meta} */ (await readBlock("meta"));
  /** @type {Record<string, any[]>} */
  const columns = {};
  await Promise.all(
    meta.columns.map(async (name) => {
      columns[name] = await readBlock(`rows-${name}`);
    }),
  );
  return new Table(meta, columns);
}

/** Resolves once all of the file is there: details come after the script. */
function wholeFile() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, { once: true }));
}

/** @param {string} id */
export async function readText(id) {
  let element = document.getElementById(id);
  // The last block that was read may not be complete yet.
  if (element === null || element.nextSibling === null) {
    await wholeFile();
    element = document.getElementById(id);
  }
  const encoded = element?.textContent ?? "";
  const bytes = decoded(encoded);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

/** @param {string} id */
export async function readBlock(id) {
  return JSON.parse(await readText(id));
}

/** @param {string} base64 @returns {Uint8Array<ArrayBuffer>} */
function decoded(base64) {
  if ("fromBase64" in Uint8Array) return /** @type {any} */ (Uint8Array).fromBase64(base64);
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
