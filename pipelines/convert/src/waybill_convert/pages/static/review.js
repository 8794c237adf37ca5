// The live review page: values and their boxes highlight each other, and corrections are checked while they are typed.
// Without this script, links connect values and boxes, and a form corrects one line at a time.

import { announce } from "../everywhere.js";
import { t } from "../words.js";

const review = document.getElementById("review");
const values = document.getElementById("values");
const paper = document.getElementById("paper");
const problems = document.getElementById("problems");
const pending = document.getElementById("pending");
const next = document.getElementById("next");
const save = document.getElementById("save");
const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

const idOf = (element) => element.id.slice(2);
const valueOf = (id) => document.getElementById(`v-${id}`);
/** `lines.3.amount` is `lines[3].amount` on the server. */
const pathOf = (id) => id.replace(/\.(\d+)(?=\.|$)/, "[$1]");

// Lines come in windows: those that are not on the page yet are loaded when somebody scrolls or goes there. -----------

const loading = new Map(); // window -> what the others wait for

/** The window of a value or line that is not on the page yet, or undefined. */
function laterOf(id) {
  const [, table, index] = /^([a-z][a-z0-9_]*)\.(\d+)(?:\.|$)/.exec(id) ?? [];
  if (table === undefined) return undefined;
  return [...values.querySelectorAll("tbody.later")].find((each) => {
    const [, of, first] = /^(.*)\[(\d+)\]$/.exec(each.dataset.at);
    return of === table && +index >= +first && +index < +first + each.lines;
  });
}

/** Loads a window's lines, and their boxes on the document's pages. False if that was not possible. */
function load(later) {
  if (!later.classList.contains("later")) return Promise.resolve(true);
  if (!loading.has(later)) loading.set(later, fetchLines(later).finally(() => loading.delete(later)));
  return loading.get(later);
}

async function fetchLines(later) {
  const query = new URLSearchParams({ at: later.dataset.at, revision: review.elements.base.value });
  let answer;
  try {
    let response = await fetch(`${review.dataset.lines}?${query}`);
    for (let again = 0; again < 5 && (response.status === 429 || response.status === 503); again++) {
      const seconds = Number(response.headers.get("Retry-After")) || 1;
      await new Promise((after) => setTimeout(after, Math.min(seconds, 10) * 1000));
      response = await fetch(`${review.dataset.lines}?${query}`);
    }
    if (!response.ok) throw new Error(String(response.status));
    answer = await response.json();
  } catch {
    announce(t("convert.reviewing.no_lines"), { seen: true });
    return false;
  }
  const above = later.getBoundingClientRect().bottom <= values.getBoundingClientRect().top;
  const height = later.offsetHeight;
  later.innerHTML = answer.rows;
  later.classList.remove("later");
  later.style.height = "";
  if (above) values.scrollTop += later.offsetHeight - height; // what is in sight stays where it is
  for (const [page, boxes] of Object.entries(answer.boxes)) {
    document.querySelector(`#page-${page} svg`)?.insertAdjacentHTML("beforeend", boxes);
  }
  if (typed.size) check(); // these lines came without the corrections that are not saved yet
  return true;
}

for (const table of values.querySelectorAll(".lines table")) {
  const shown = table.querySelector("tbody:not(.later) tr");
  for (const later of table.querySelectorAll("tbody.later")) {
    later.lines = Number(later.dataset.lines);
    // As high as its lines will be, so that the scroll bar tells the truth.
    const row = later.querySelector("tr");
    if (shown && row) row.style.height = `${later.lines * shown.offsetHeight}px`;
  }
}

const coming = new IntersectionObserver((entries) => {
  for (const each of entries) if (each.isIntersecting) load(each.target).then(() => coming.unobserve(each.target));
}, { root: matchMedia("(min-width: 60rem)").matches ? values : null, rootMargin: "600px 0px" });
for (const later of values.querySelectorAll("tbody.later")) coming.observe(later);
// A page of the document needs the boxes of the lines that are on it.
const leafing = new IntersectionObserver((entries) => {
  for (const each of entries.filter((entry) => entry.isIntersecting)) {
    const page = each.target.id.slice("page-".length);
    for (const later of values.querySelectorAll("tbody.later")) {
      if (later.dataset.pages.split(" ").includes(page)) load(later);
    }
  }
}, { threshold: 0.2 });
for (const leaf of paper.querySelectorAll(".leaf")) leafing.observe(leaf);
values.addEventListener("click", (event) => {
  const later = event.target.closest("tbody.later");
  if (!later) return;
  event.preventDefault();
  load(later);
});

// Highlighting --------------------------------------------------------------------------------------------------------

let lit = [];

function light(id) {
  for (const each of lit) each.classList.remove("lit");
  lit = [valueOf(id), ...paper.querySelectorAll(`[data-of="${CSS.escape(id)}"]`)].filter(Boolean);
  for (const each of lit) each.classList.add("lit");
}

/** Scrolls a pane so that the element is in its middle. Nothing else moves. */
function bring(pane, element) {
  const outer = pane.getBoundingClientRect(), inner = element.getBoundingClientRect();
  if (inner.top >= outer.top + 40 && inner.bottom <= outer.bottom - 40
    && inner.left >= outer.left && inner.right <= outer.right) return;
  const down = inner.top - outer.top - (outer.height - inner.height) / 2;
  const across = inner.left < outer.left || inner.right > outer.right ? inner.left - outer.left - outer.width / 3 : 0;
  const near = Math.abs(down) < outer.height * 1.5;
  pane.scrollBy({ top: down, left: across, behavior: near && !still ? "smooth" : "instant" });
}

function showOnPaper(id) {
  light(id);
  const box = document.getElementById(`b-${id}`);
  if (box) bring(paper, box);
}

// Highlight only what the pointer rests on, because it passes over many values. And only if the pointer itself moved:
// when a pane scrolls, values pass under it.
let resting = 0, where = "";
function whenResting(event, action) {
  const here = `${event.clientX} ${event.clientY}`;
  if (here === where) return;
  where = here;
  clearTimeout(resting);
  resting = setTimeout(action, 90);
}
addEventListener("pointermove", (event) => { where = `${event.clientX} ${event.clientY}`; }, { passive: true });

values.addEventListener("pointerover", (event) => {
  const value = event.target.closest(".v");
  if (value) whenResting(event, () => showOnPaper(idOf(value)));
});
values.addEventListener("pointerleave", () => clearTimeout(resting));
values.addEventListener("focusin", (event) => {
  const value = event.target.closest(".v");
  if (!value) return;
  clearTimeout(resting);
  showOnPaper(idOf(value));
});
paper.addEventListener("pointerover", (event) => {
  const box = event.target.closest("[data-of]");
  if (!box) return;
  whenResting(event, () => {
    light(box.dataset.of);
    const value = valueOf(box.dataset.of);
    if (value) bring(values, value);
  });
});
paper.addEventListener("pointerleave", () => clearTimeout(resting));
paper.addEventListener("click", (event) => {
  const box = event.target.closest("[data-of]");
  if (!box) return;
  event.preventDefault();
  go(box.dataset.of);
});

/** Goes to a value: scrolls to it, focuses and highlights it. It may have to be loaded first. */
function go(id) {
  const value = valueOf(id);
  if (!value) {
    const later = laterOf(id);
    if (later) load(later).then((there) => there && go(id));
    return;
  }
  bring(values, value);
  value.focus({ preventScroll: true });
  showOnPaper(id);
}

problems.addEventListener("click", (event) => {
  const link = event.target.closest("[data-goes]");
  if (!link) return;
  event.preventDefault();
  if (valueOf(link.dataset.goes) || laterOf(link.dataset.goes)) go(link.dataset.goes);
  else if (link.hash) {
    const box = document.getElementById(link.hash.slice(1));
    if (box) bring(paper, box);
    if (box?.dataset.of) light(box.dataset.of);
  }
});

// The next doubtful value ---------------------------------------------------------------------------------------------

async function goOn(backwards) {
  // A window that is not loaded stands for the doubtful values in it.
  const doubts = [...values.querySelectorAll(".v.doubt, .v.refused, tbody.later")]
    .filter((each) => !each.classList.contains("later") || Number(each.dataset.doubtful));
  if (!doubts.length) {
    announce(t("convert.reviewing.no_doubt"), { seen: true });
    return;
  }
  const here = lit.find((each) => each.classList.contains("v")) ?? null;
  const after = (each) => here && here.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
  const before = (each) => here && here.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING;
  const found = backwards ? doubts.findLast(before) ?? doubts.at(-1) : doubts.find(after) ?? doubts[0];
  if (found.classList.contains("later")) {
    if (await load(found)) await goOn(backwards);
    return;
  }
  go(idOf(found));
  const size = (each) => (each.classList.contains("later") ? Number(each.dataset.doubtful) : 1);
  const sum = (some) => some.reduce((count, each) => count + size(each), 0);
  announce(t("convert.reviewing.doubt", { number: sum(doubts.slice(0, doubts.indexOf(found))) + 1, count: sum(doubts) }));
}
next?.addEventListener("click", () => goOn(false));

// Moving and editing by keyboard --------------------------------------------------------------------------------------

function neighbour(value, rows, columns) {
  const cell = value.closest("td");
  if (!cell) return null;
  if (columns) {
    const beside = columns > 0 ? cell.nextElementSibling : cell.previousElementSibling;
    return beside?.querySelector(".v");
  }
  const row = cell.parentElement, body = row.parentElement;
  const beyond = rows > 0 ? body.nextElementSibling : body.previousElementSibling;
  const next = rows > 0 ? row.nextElementSibling ?? beyond?.firstElementChild
    : row.previousElementSibling ?? (beyond?.matches("tbody") ? beyond.lastElementChild : null);
  if (next?.parentElement.classList.contains("later")) {
    load(next.parentElement).then((there) => {
      const again = there && neighbour(value, rows, columns);
      if (again) go(idOf(again));
    });
    return null;
  }
  return next?.children[cell.cellIndex]?.querySelector(".v");
}

const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

document.addEventListener("keydown", (event) => {
  if (event.key === "F8") {
    event.preventDefault();
    goOn(event.shiftKey);
  } else if (event.key === "s" && (event.ctrlKey || event.metaKey) && save) {
    event.preventDefault();
    if (!save.disabled) save.click();
  }
});

values.addEventListener("keydown", (event) => {
  const value = event.target.closest(".v");
  if (!value || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in ARROWS) {
    const found = neighbour(value, ...ARROWS[event.key]);
    if (!found) return;
    event.preventDefault();
    go(idOf(found));
  } else if (event.key === "n" || event.key === "N") {
    event.preventDefault();
    goOn(event.key === "N");
  } else if (event.key === "Enter" || event.key === "F2") {
    event.preventDefault();
    edit(value);
  } else if (/^[0-9+-]$/.test(event.key)) {
    event.preventDefault();
    edit(value, event.key);
  }
});
values.addEventListener("click", (event) => {
  const value = event.target.closest(".v");
  if (!value) return;
  event.preventDefault();
  // The first click looks, the second one edits: also with a finger, which has no double click.
  if (value === document.activeElement && value.dataset.looked) edit(value);
  else {
    for (const each of values.querySelectorAll("[data-looked]")) delete each.dataset.looked;
    value.dataset.looked = "1";
    go(idOf(value));
  }
});

// Editing -------------------------------------------------------------------------------------------------------------

const typed = new Map(); // id -> what is to be sent
const original = new Map(); // id -> how the value was when the page came
for (const each of pending.children) typed.set(each.name.slice(2).replace("[", ".").replace("]", ""), each.value);

function keepOriginal(value) {
  if (!original.has(value.id)) original.set(value.id, { html: value.innerHTML, look: value.className, title: value.title });
}

const textOf = (value) => {
  const text = value.firstChild?.textContent ?? "";
  return text === "–" ? "" : text;
};

function edit(value, begin) {
  if (!save || value.classList.contains("made")) {
    if (save) announce(t("convert.reviewing.computed"), { seen: true });
    return;
  }
  const id = idOf(value);
  keepOriginal(value);
  const before = typed.get(id) ?? textOf(value);
  const box = document.createElement("input");
  box.className = "typing";
  box.value = begin ?? before;
  box.autocomplete = "off";
  box.maxLength = 1000;
  box.setAttribute("aria-label", value.closest("div")?.querySelector("dt")?.textContent
    ?? document.querySelector(`[data-of="${CSS.escape(id)}"]`)?.getAttribute("aria-label") ?? "");
  if (value.dataset.list) box.setAttribute("list", `c-${value.dataset.list}`);
  value.hidden = true;
  value.after(box);
  box.focus();
  if (!begin) box.select();

  let left = false;
  function leave(text) {
    if (left) return;
    left = true;
    box.remove();
    value.hidden = false;
    put(value, text);
  }
  box.addEventListener("input", () => {
    typed.set(id, box.value);
    check();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      leave(box.value);
      go(idOf(neighbour(value, event.shiftKey ? -1 : 1, 0) ?? value));
    } else if (event.key === "Escape") {
      event.stopPropagation();
      leave(before);
      go(id);
    } else if (event.key === "Tab") {
      leave(box.value);
      value.focus({ preventScroll: true }); // and the browser goes on from there
    }
  });
  box.addEventListener("blur", () => leave(box.value));
}

function put(value, text) {
  const id = idOf(value);
  const was = original.get(value.id);
  const first = document.createElement("a");
  first.innerHTML = was.html;
  if (text === textOf(first)) {
    typed.delete(id);
    restore(value);
  } else {
    typed.set(id, text);
    value.classList.add("changed");
    value.textContent = text || "–";
  }
  check();
}

function restore(value) {
  const was = original.get(value.id);
  if (!was) return;
  const isLit = value.classList.contains("lit");
  value.innerHTML = was.html;
  value.className = was.look;
  value.title = was.title;
  if (isLit) value.classList.add("lit");
}

// Checking ------------------------------------------------------------------------------------------------------------

const PAUSE = 150; // milliseconds from one question to the next
let asking = false, waiting = 0, asked = -Infinity;

/** Asks at once. While an answer is awaited, or was asked for a moment ago, one question later covers all changes. */
function check() {
  fill();
  if (asking || waiting) return;
  const wait = asked + PAUSE - performance.now();
  if (wait > 0) later(wait);
  else ask();
}

function later(wait) {
  waiting = setTimeout(() => {
    waiting = 0;
    ask();
  }, wait);
}

function fill() {
  pending.replaceChildren(...[...typed].map(([id, text]) => {
    const input = document.createElement("input");
    input.type = "hidden";
    input.name = `v.${pathOf(id)}`;
    input.value = text;
    return input;
  }));
  review.dataset.changed = String(typed.size);
  if (save) save.disabled = typed.size === 0;
}

async function ask() {
  const form = new URLSearchParams({ base: review.elements.base.value });
  for (const [id, text] of typed) form.append(`v.${pathOf(id)}`, text);
  const about = form.toString();
  for (const each of values.querySelectorAll("tbody[data-at]:not(.later)")) form.append("at", each.dataset.at);
  asking = true;
  asked = performance.now();
  let answer = null, wait = PAUSE;
  try {
    const response = await fetch(review.dataset.check, { method: "POST", body: form });
    if (response.status === 429 || response.status === 503) {
      wait = Math.min(Number(response.headers.get("Retry-After")) || 1, 10) * 1000;
    } else if (!response.ok) throw new Error(String(response.status));
    else answer = await response.json();
  } catch {
    announce(t("convert.reviewing.unchecked"), { seen: true });
    return;
  } finally {
    asking = false;
  }
  const now = new URLSearchParams({ base: review.elements.base.value });
  for (const [id, text] of typed) now.append(`v.${pathOf(id)}`, text);
  if (answer === null || now.toString() !== about) later(Math.max(0, asked + wait - performance.now()));
  if (answer !== null) show(answer);
}

function show(answer) {
  // The same problems stay where they are: a click that has begun on one of them would be lost with it.
  const found = document.createElement("template");
  found.innerHTML = answer.problems;
  if (found.innerHTML !== problems.innerHTML) problems.replaceChildren(found.content);
  const told = new Set();
  for (const each of answer.values) {
    const value = valueOf(each.id);
    if (!value) continue;
    keepOriginal(value);
    told.add(value.id);
    const isLit = value.classList.contains("lit");
    value.className = `v ${each.look}`;
    if (isLit) value.classList.add("lit");
    value.title = each.says;
    value.textContent = each.text || "–";
    if (each.says) {
      const unseen = document.createElement("span");
      unseen.className = "unseen";
      unseen.textContent = `, ${each.says}`;
      value.append(unseen);
    }
  }
  for (const [id] of original) {
    const value = document.getElementById(id);
    if (value && !told.has(id) && !typed.has(id.slice(2))) restore(value);
  }
  for (const later of values.querySelectorAll("tbody.later")) later.dataset.doubtful = answer.windows[later.dataset.at] ?? 0;
  document.getElementById("doubtful").textContent = answer.doubtful;
  next.hidden = !answer.doubtful;
  announce(answer.news);
}

if (save) save.disabled = typed.size === 0;
review.addEventListener("submit", () => {
  fill();
  removeEventListener("beforeunload", mayLose);
});
function mayLose(event) {
  if (typed.size) event.preventDefault();
}
addEventListener("beforeunload", mayLose);

// The XML, loaded on demand -------------------------------------------------------------------------------------------

const xml = document.getElementById("xml");
xml?.addEventListener("toggle", async () => {
  const text = xml.querySelector("pre");
  if (!xml.open || text.textContent) return;
  const response = await fetch(text.dataset.from);
  text.textContent = response.ok ? await response.text() : t("convert.reviewing.no_xml");
});

// An address may name a value to show.
if (location.hash.startsWith("#v-")) go(location.hash.slice(3));
