// Keyboard shortcuts. `bind` adds one; elements with `data-key` are clicked by their key, and their
// `title` or text says what it does. `?` lists all of them.

/** @type {Map<string, {description: string, act: () => void}>} */
const bound = new Map();

/**
 * @param {string} key as in KeyboardEvent.key
 * @param {string} description
 * @param {() => void} act
 */
export function bind(key, description, act) {
  bound.set(key, { description, act });
}

/** @param {string} key */
export function unbind(key) {
  bound.delete(key);
}

/** Binds the keys of all elements that have one. */
export function bindLinks() {
  for (const element of document.querySelectorAll("[data-key]")) {
    const target = /** @type {HTMLElement} */ (element);
    const key = target.dataset.key ?? "";
    const description = target.dataset.keyHelp ?? target.textContent?.trim() ?? "";
    bind(key, description, () => (target.matches("input") ? target.focus() : target.click()));
  }
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (isTyping(event.target)) {
    if (event.key === "Escape") /** @type {HTMLElement} */ (event.target).blur();
    return;
  }
  const found = bound.get(event.key);
  if (found === undefined || document.querySelector("dialog[open]") !== null) return;
  event.preventDefault();
  found.act();
});

/** Opens the list of keys. */
export function showHelp() {
  let dialog = /** @type {HTMLDialogElement | null} */ (document.getElementById("keys"));
  if (dialog === null) {
    dialog = document.createElement("dialog");
    dialog.id = "keys";
    dialog.setAttribute("aria-labelledby", "keys-title");
    document.body.append(dialog);
  }
  const title = document.createElement("h2");
  title.id = "keys-title";
  title.textContent = "Keys";
  const list = document.createElement("dl");
  list.className = "facts";
  for (const [key, { description }] of bound) {
    const row = document.createElement("div");
    const term = document.createElement("dt");
    const shown = document.createElement("kbd");
    shown.textContent = key;
    term.append(shown);
    const said = document.createElement("dd");
    said.textContent = description;
    row.append(term, said);
    list.append(row);
  }
  const form = document.createElement("form");
  form.method = "dialog";
  const close = document.createElement("button");
  close.textContent = "Close";
  form.append(close);
  dialog.replaceChildren(title, list, form);
  dialog.showModal();
}
