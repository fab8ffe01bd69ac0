// Buttons with `data-copy` copy the text of the element with that id. They are hidden without
// JavaScript, where the text can be selected.

/** Shows the copy buttons and makes them work. */
export function bindCopies() {
  for (const element of document.querySelectorAll("button[data-copy]")) {
    const button = /** @type {HTMLButtonElement} */ (element);
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
}

/** @param {HTMLButtonElement} button */
async function copy(button) {
  const source = document.getElementById(button.dataset.copy ?? "");
  if (source === null) return;
  const label = button.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent ?? "");
    button.textContent = "Copied";
  } catch {
    // Pages over plain http from another machine may not use the clipboard.
    getSelection()?.selectAllChildren(source);
    button.textContent = "Selected: press Ctrl-C";
  }
  setTimeout(() => (button.textContent = label), 2000);
}
