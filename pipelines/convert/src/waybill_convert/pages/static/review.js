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

/** Goes to a value: scrolls to it, focuses and highlights it. */
function go(id) {
  const value = valueOf(id);
  if (!value) return;
  bring(values, value);
  value.focus({ preventScroll: true });
  showOnPaper(id);
}

problems.addEventListener("click", (event) => {
  const link = event.target.closest("[data-goes]");
  if (!link) return;
  event.preventDefault();
  if (valueOf(link.dataset.goes)) go(link.dataset.goes);
  else {
    const box = document.getElementById(link.hash.slice(1));
    if (box) bring(paper, box);
    if (box?.dataset.of) light(box.dataset.of);
  }
});

// The next doubtful value ---------------------------------------------------------------------------------------------

function goOn(backwards) {
  const doubts = [...values.querySelectorAll(".v.doubt, .v.refused")];
  if (!doubts.length) {
    announce(t("convert.reviewing.no_doubt"), { seen: true });
    return;
  }
  const here = lit.find((each) => each.classList.contains("v")) ?? null;
  const after = (each) => here && here.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
  const before = (each) => here && here.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_PRECEDING;
  const found = backwards ? doubts.findLast(before) ?? doubts.at(-1) : doubts.find(after) ?? doubts[0];
  go(idOf(found));
  announce(t("convert.reviewing.doubt", { number: doubts.indexOf(found) + 1, count: doubts.length }));
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
  const row = rows > 0 ? cell.parentElement.nextElementSibling : cell.parentElement.previousElementSibling;
  return row?.children[cell.cellIndex]?.querySelector(".v");
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

let waiting = 0, asked = null;

function check() {
  fill();
  clearTimeout(waiting);
  waiting = setTimeout(ask, 150);
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
  asked?.abort();
  const mine = asked = new AbortController();
  let answer;
  try {
    const form = new URLSearchParams({ base: review.elements.base.value });
    for (const [id, text] of typed) form.append(`v.${pathOf(id)}`, text);
    const response = await fetch(review.dataset.check, { method: "POST", body: form, signal: mine.signal });
    if (!response.ok) throw new Error(String(response.status));
    answer = await response.json();
  } catch (error) {
    if (error.name !== "AbortError") announce(t("convert.reviewing.unchecked"), { seen: true });
    return;
  }
  if (mine !== asked) return;
  problems.innerHTML = answer.problems;
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
