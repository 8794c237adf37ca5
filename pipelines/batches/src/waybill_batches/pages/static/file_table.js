// The table of a batch's files. Of ten thousand rows, only those in sight are in the page; the others are two empty rows
// that are as high as all of them. The server has no row numbers, only cursors: where one page of rows ends, the next
// begins. So a page is loaded when all before it are known; those far from what is seen are forgotten again.

import { asked } from "./live.js";

const BEFORE = 12; // rows that are kept above and below those in sight
const KEPT = 12; // pages of rows that are kept in memory

export class FileTable {
  /** `total` says how many files there are, or -1 if nobody knows. */
  constructor(table, total) {
    this.table = table;
    this.body = table.tBodies[0];
    this.total = total;
    this.size = 200; // rows of a full page
    /** @type {{cursor: string, rows: string[] | null, count: number, next: string | null}[]} */
    this.pages = [];
    this.shown = new Map(); // row elements by their number
    this.loading = null;
    this.height = 0;
    this.above = this.#space();
    this.below = this.#space();
    if (!table.dataset.from && this.body.rows.length) {
      const rows = [...this.body.rows].map((row) => row.outerHTML);
      this.#take(0, { cursor: "", rows, count: rows.length, next: table.dataset.next || null });
    }
    this.body.replaceChildren(this.above, this.below);
    const look = () => { this.seeing ||= requestAnimationFrame(() => { this.seeing = 0; this.show(); }); };
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", () => { this.height = 0; look(); });
    this.show();
    if (table.dataset.from) this.refresh(); // the address begins in the middle: here every row can be scrolled to
  }

  #space() {
    const row = document.createElement("tr");
    row.className = "space";
    row.setAttribute("aria-hidden", "true");
    row.append(document.createElement("td"));
    return row;
  }

  #take(at, page) {
    this.pages[at] = page;
    if (page.next && page.count) this.size = page.count;
  }

  get #known() { return this.pages.reduce((sum, page) => sum + page.count, 0); }

  get #complete() { return this.pages.length > 0 && !this.pages.at(-1).next; }

  /** How many rows there are, as far as anybody knows. */
  get count() {
    if (this.#complete) return this.#known;
    return Math.max(this.total(), this.#known + (this.pages.length ? 1 : 0));
  }

  #rowHeight() {
    if (!this.height) {
      const row = this.body.querySelector("tr.entry");
      if (row) this.height = row.getBoundingClientRect().height;
    }
    return this.height || 60;
  }

  /** Puts the rows in sight into the page, and loads those that are missing. */
  show() {
    const height = this.#rowHeight(), count = this.count;
    this.table.hidden = count < 1;
    this.table.setAttribute("aria-rowcount", String(count + 1));
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(Math.floor(-top / height), count) - BEFORE);
    const last = Math.min(count, Math.ceil((innerHeight - top) / height) + BEFORE);
    this.first = first;
    this.last = last;
    const wanted = new Map();
    let missing = -1;
    for (let at = first; at < last; at += 1) {
      const html = this.#html(at);
      if (html === null && missing < 0) missing = at;
      wanted.set(at, html);
    }
    for (const [at, row] of this.shown) {
      if (wanted.has(at)) continue;
      row.remove();
      this.shown.delete(at);
    }
    let before = this.above;
    for (const [at, html] of wanted) {
      let row = this.shown.get(at);
      if (!row || row.html !== (html ?? "")) {
        const fresh = this.#made(at, html);
        if (row) this.#replace(row, fresh);
        row = fresh;
        this.shown.set(at, row);
      }
      if (before.nextSibling !== row) before.after(row);
      before = row;
    }
    this.above.hidden = first === 0;
    this.below.hidden = last >= count;
    this.above.firstChild.style.height = `${first * height}px`;
    this.below.firstChild.style.height = `${Math.max(0, count - last) * height}px`;
    if (!this.height && this.shown.size) {
      this.#rowHeight();
      if (this.height) this.show();
      return;
    }
    if (missing >= 0) this.#load(missing);
  }

  #made(at, html) {
    let row;
    if (html === null) {
      row = this.#space();
      row.className = "entry later";
      row.append(document.createElement("td"));
      row.lastChild.className = "what";
    } else {
      const made = document.createElement("template");
      made.innerHTML = html;
      row = made.content.firstElementChild;
    }
    row.html = html ?? "";
    row.setAttribute("aria-rowindex", String(at + 2));
    return row;
  }

  #replace(old, fresh) {
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && [...old.querySelectorAll("a")].indexOf(focused);
    old.replaceWith(fresh);
    if (focused) (fresh.querySelectorAll("a")[place] ?? fresh.querySelector("a"))?.focus({ preventScroll: true });
  }

  /** The row's HTML; null if it is not loaded. */
  #html(at) {
    let first = 0;
    for (const page of this.pages) {
      if (at < first + page.count) return page.rows?.[at - first] ?? null;
      first += page.count;
    }
    return null;
  }

  /** The number of the page with this row; the first unknown one for rows further down. */
  #pageOf(row) {
    let first = 0;
    for (const [at, page] of this.pages.entries()) {
      if (row < first + page.count) return at;
      first += page.count;
    }
    return this.pages.length;
  }

  #load(row) {
    if (this.loading) return;
    const at = this.#pageOf(row);
    if (at === this.pages.length && this.#complete) return;
    // On the way to rows that are far away, it is enough to know where each page ends.
    const passing = at === this.pages.length && row >= this.#known + 2 * this.size;
    this.loading = this.#fetch(at, passing).catch(() => false).then((loaded) => {
      this.loading = null;
      if (loaded) this.show(); // loads the next one, if it is still wanted
    });
  }

  async #fetch(at, passing = false) {
    const cursor = at ? this.pages[at - 1].next : "";
    const address = new URL(this.table.dataset.rows, location.href);
    if (cursor) address.searchParams.set("cursor", cursor);
    if (passing) address.searchParams.set("bare", "1");
    const { rows, count, next } = await (await asked(address)).json();
    if (this.pages[at]?.next !== next) this.pages.length = Math.min(this.pages.length, at);
    this.#take(at, { cursor, rows, count, next });
    this.#forget(at);
    return true;
  }

  /** Forgets rows that are far from those in sight; where they begin stays known. */
  #forget(at) {
    const held = this.pages.map((page, number) => (page.rows ? number : -1)).filter((number) => number >= 0);
    held.sort((a, b) => Math.abs(b - at) - Math.abs(a - at));
    for (const number of held.slice(0, Math.max(0, held.length - KEPT))) this.pages[number].rows = null;
  }

  /** Loads what is in sight again. Pages behind it are forgotten if they begin elsewhere now. */
  async refresh() {
    await this.loading;
    const last = Math.max(0, this.pages.length - 1); // an empty list has a page, too
    const from = Math.min(this.#pageOf(this.first), last);
    const to = Math.min(this.#pageOf(Math.max(this.first, this.last - 1)), from + 1);
    for (let at = from; at <= to; at += 1) {
      if (at && !this.pages[at - 1]?.next) break;
      await this.#fetch(at);
    }
    this.show();
  }
}
