// Makes elements. Texts become text nodes, so nothing of theirs is markup.

/**
 * @param {string} tag such as `div` or `span.tag`
 * @param {...(Node | string | null | undefined)} inside
 * @returns {HTMLElement}
 */
export function make(tag, ...inside) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const part of inside) if (part !== null && part !== undefined) element.append(part);
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
