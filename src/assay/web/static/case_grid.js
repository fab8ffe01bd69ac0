// A list of cases, of which only the visible rows are drawn.
import { make } from "./elements.js";

const ROW_HEIGHT = 32;
/** Browsers stop at about 16.7 million pixels: longer lists are scrolled faster. */
const MAX_HEIGHT = 8_000_000;
/** Shorter lists are drawn as a whole, so that browsers can search them. */
const DRAW_ALL = 1000;
const EXTRA_ROWS = 8;

/**
 * @typedef {{key: string, label: string, title?: string, classes: string, sorted: boolean,
 *   draw: (row: number, cell: HTMLElement) => void}} GridColumn
 */

export class CaseGrid {
  /**
   * @param {HTMLElement} place
   * @param {GridColumn[]} columns
   * @param {{open: (row: number) => void, sort: (key: string) => void}} actions
   */
  constructor(place, columns, actions) {
    this.columns = columns;
    this.actions = actions;
    /** @type {ArrayLike<number>} the rows to show, in order */
    this.rows = [];
    this.current = 0;
    this.head = make("div.grid-row.grid-head");
    this.head.setAttribute("role", "row");
    this.head.setAttribute("aria-rowindex", "1");
    for (const column of columns) this.head.append(this.headCell(column));
    this.body = make("div.grid-body");
    this.body.setAttribute("role", "rowgroup");
    this.grid = make("div.grid", this.head, this.body);
    this.grid.setAttribute("role", "grid");
    this.grid.setAttribute("aria-label", "Cases");
    this.grid.tabIndex = 0;
    place.replaceChildren(this.grid);
    /** @type {HTMLElement[]} */
    this.drawn = [];
    this.grid.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.grid);
    this.body.addEventListener("click", (event) => this.clicked(event));
  }

  /** @param {ArrayLike<number>} rows */
  show(rows) {
    this.rows = rows;
    this.grid.setAttribute("aria-rowcount", String(rows.length + 1));
    const height = rows.length * ROW_HEIGHT;
    this.body.style.height = `${Math.min(height, MAX_HEIGHT)}px`;
    this.current = Math.min(this.current, Math.max(rows.length - 1, 0));
    this.grid.scrollTop = 0;
    this.draw();
  }

  /** @param {string} key @param {boolean} descending */
  showOrder(key, descending) {
    for (const cell of this.head.children) {
      const isSorted = /** @type {HTMLElement} */ (cell).dataset.key === key;
      if (isSorted) cell.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** Makes a row current and scrolls to it. @param {number} index in the list */
  select(index) {
    if (this.rows.length === 0) return;
    this.current = Math.min(Math.max(index, 0), this.rows.length - 1);
    const top = this.current * ROW_HEIGHT;
    const view = this.viewHeight();
    const virtual = this.virtualTop();
    if (top < virtual) this.scrollTo(top);
    else if (top + ROW_HEIGHT > virtual + view) this.scrollTo(top + ROW_HEIGHT - view);
    this.draw();
  }

  viewHeight() {
    return Math.max(this.grid.clientHeight - this.head.offsetHeight, ROW_HEIGHT);
  }

  /** How much longer the list is than its element: 1 unless it is very long. */
  scale() {
    const height = this.rows.length * ROW_HEIGHT;
    if (height <= MAX_HEIGHT) return 1;
    return (height - this.viewHeight()) / (MAX_HEIGHT - this.viewHeight());
  }

  virtualTop() {
    return this.grid.scrollTop * this.scale();
  }

  /** @param {number} virtual */
  scrollTo(virtual) {
    this.grid.scrollTop = virtual / this.scale();
  }

  /** Draws the visible rows; elements are used again, as making them takes longest. */
  draw() {
    const view = this.viewHeight();
    const virtual = this.virtualTop();
    const all = this.rows.length <= DRAW_ALL;
    const first = all ? 0 : Math.max(Math.floor(virtual / ROW_HEIGHT) - EXTRA_ROWS, 0);
    const last = all
      ? this.rows.length
      : Math.min(Math.ceil((virtual + view) / ROW_HEIGHT) + EXTRA_ROWS, this.rows.length);
    while (this.drawn.length < last - first) {
      const element = this.makeRow();
      this.drawn.push(element);
      this.body.append(element);
    }
    for (let at = 0; at < this.drawn.length; at++) {
      const element = this.drawn[at];
      const index = first + at;
      element.hidden = index >= last;
      if (element.hidden) continue;
      element.style.transform = `translateY(${this.grid.scrollTop + index * ROW_HEIGHT - virtual}px)`;
      const row = this.rows[index];
      element.classList.toggle("current", index === this.current);
      if (element.dataset.row === String(row) && element.dataset.index === String(index)) continue;
      element.dataset.row = String(row);
      element.dataset.index = String(index);
      element.setAttribute("aria-rowindex", String(index + 2));
      this.columns.forEach((column, place) => {
        column.draw(row, /** @type {HTMLElement} */ (element.children[place]));
      });
    }
    while (this.drawn.length > Math.max(last - first, 100)) this.drawn.pop()?.remove();
  }

  makeRow() {
    const element = make("div.grid-row");
    element.setAttribute("role", "row");
    for (const column of this.columns) {
      const cell = make("div");
      cell.className = column.classes;
      cell.setAttribute("role", "gridcell");
      element.append(cell);
    }
    return element;
  }

  /** @param {GridColumn} column */
  headCell(column) {
    const cell = make("div");
    cell.className = column.classes;
    cell.dataset.key = column.key;
    cell.setAttribute("role", "columnheader");
    if (!column.sorted) {
      cell.textContent = column.label;
      return cell;
    }
    const button = /** @type {HTMLButtonElement} */ (make("button.quiet", column.label));
    button.type = "button";
    button.addEventListener("click", () => this.actions.sort(column.key));
    cell.append(button);
    return cell;
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // links open elsewhere
    const element = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".grid-row"));
    if (element === null || getSelection()?.toString()) return;
    event.preventDefault();
    this.current = Number(element.dataset.index);
    this.actions.open(Number(element.dataset.row));
  }
}
