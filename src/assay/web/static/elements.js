// Makes elements. Texts become text nodes, so nothing of theirs is markup.

const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]/gu;

/**
 * The text with characters that would hide or reverse other text written out, as on the pages.
 * @param {string} text
 */
export function visible(text) {
  return text.replace(INVISIBLE, (found) => {
    if (found === "\r") return "";
    const code = found.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

/**
 * @param {string} tag such as `div` or `span.tag`
 * @param {...(Node | string | null | undefined)} inside
 * @returns {HTMLElement}
 */
export function make(tag, ...inside) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const part of inside) {
    if (part !== null && part !== undefined) element.append(typeof part === "string" ? visible(part) : part);
  }
  return element;
}

/**
 * The element with an id, which the page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}
