// What every page loads: keys, copying, and lists that can be walked through.
import { bindLinks, showHelp, bind } from "./keys.js";
import { walkRows } from "./rows.js";
import { bindCopies } from "./copy.js";

bindLinks();
bindCopies();
for (const table of document.querySelectorAll("table[data-rows]")) {
  walkRows(/** @type {HTMLTableElement} */ (table));
}
bind("?", "Show the keys", showHelp);
