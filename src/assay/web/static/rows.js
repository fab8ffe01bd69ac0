// j and k walk through the rows of a table; Enter follows the link of the row, as everywhere.
import { bind } from "./keys.js";

/** @param {HTMLTableElement} table whose rows have one main link each, marked `data-row` */
export function walkRows(table) {
  const links = () =>
    /** @type {HTMLElement[]} */ ([...table.querySelectorAll("tbody a[data-row]")]);
  /** @param {number} step */
  const move = (step) => {
    const all = links();
    const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1);
    all[next]?.focus();
    all[next]?.closest("tr")?.scrollIntoView({ block: "nearest" });
  };
  bind("j", "Next row", () => move(1));
  bind("k", "Previous row", () => move(-1));
}
