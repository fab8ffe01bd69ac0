// A form that asks before its changes are lost, counts characters, and is saved with Ctrl+Enter.

const form = /** @type {HTMLFormElement} */ (document.querySelector("form[data-guard]"));
const fields = [...form.querySelectorAll("textarea")];
const unsaved = form.querySelector("[data-unsaved]");
const opened = fields.map((field) => field.value);
// What was sent and came back with a problem or a conflict is not saved either.
const cameBack = document.querySelector("[role=alert]") !== null;
let sent = false;

const isChanged = () => cameBack || fields.some((field, index) => field.value !== opened[index]);

addEventListener("beforeunload", (event) => {
  if (!sent && isChanged()) event.preventDefault();
});
form.addEventListener("submit", () => (sent = true));
// Back from the next page, the browser may show this one as it was.
addEventListener("pageshow", () => (sent = false));
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

/** @param {HTMLTextAreaElement} field */
function count(field) {
  const most = Number(field.dataset.most);
  const hint = document.getElementById(`${field.id}-hint`);
  if (!most || hint === null) return;
  // Code points, as the server counts them.
  const length = [...field.value].length;
  hint.textContent = `${length.toLocaleString("en")} of ${most.toLocaleString("en")} characters`;
  hint.classList.toggle("tone-worse", length > most);
}

function update() {
  fields.forEach(count);
  if (unsaved instanceof HTMLElement) unsaved.hidden = !isChanged();
}
form.addEventListener("input", update);
update();
