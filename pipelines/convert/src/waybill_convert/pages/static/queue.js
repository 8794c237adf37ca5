// The queue, live. htmx asks and sends; its SSE extension listens; this decides when to ask, and puts what comes where
// it belongs without taking the page out of the reader's hands.

import { announce, tellTimes } from "./everywhere.js";
import { explain, language, t } from "./words.js";

const htmx = window.htmx;
const queue = document.getElementById("queue");
const SOON = 400; // no more often than this, however busy the converter is
const POLL = 3000; // without a stream; grows while nothing happens
const POLL_MAX = 15000;
const NET = 15000; // beside a stream: for what it does not tell, and for one that broke without a word

// Putting things where they belong -----------------------------------------------------------------------------------

// Parts with the same id are compared by what the server sent last: what did not change is not touched, so that focus,
// open folds and selected text stay.
const sent = new Map();
const LISTS = new Set(["jobs"]);
const PARTS = ["top", "counts", "hold", "jobs", "none", "pager"];

/** What the server said: how long ago is the clock's to say, here. */
function said(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  return copy.outerHTML;
}

function remember(element) {
  sent.set(element.id, said(element));
}

function replace(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && [...old.querySelectorAll("a, button, summary, input")].indexOf(focused);
  const open = [...old.querySelectorAll("details[open]")].map((each) => each.id);
  remember(fresh);
  old.replaceWith(fresh);
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  if (focused) {
    const again = (focused.id && document.getElementById(focused.id))
      || fresh.querySelectorAll("a, button, summary, input")[place] || fresh.querySelector("a, button, summary");
    again?.focus({ preventScroll: true });
  }
  return fresh;
}

function reconcile(list, fresh) {
  const made = [];
  const wanted = new Set([...fresh.children].map((each) => each.id));
  for (const old of [...list.children]) {
    if (!wanted.has(old.id)) {
      sent.delete(old.id);
      htmx.remove(old);
    }
  }
  let before = null;
  for (const row of [...fresh.children]) {
    const old = document.getElementById(row.id);
    let stays = old;
    if (!old) {
      remember(row);
      row.classList.add("fresh");
      made.push(stays = row);
    } else if (sent.get(row.id) !== said(row)) made.push(stays = replace(old, row));
    // Only what is elsewhere is moved: moving takes the focus away.
    const place = before ? before.nextElementSibling : list.firstElementChild;
    if (stays !== place) {
      const focused = stays.contains(document.activeElement) ? document.activeElement : null;
      list.insertBefore(stays, place);
      focused?.focus({ preventScroll: true });
    }
    before = stays;
  }
  return made;
}

function settle(fragment) {
  const made = [];
  for (const id of PARTS) {
    const fresh = fragment.querySelector(`#${id}`);
    const old = document.getElementById(id);
    if (!fresh || !old) continue;
    if (LISTS.has(id)) made.push(...reconcile(old, fresh));
    else if (sent.get(id) !== said(fresh)) made.push(replace(old, fresh));
  }
  tellTimes(queue);
  return made;
}

// In the place of htmx's swap, which knows no better than to replace everything, and which asks the element that was
// pressed how to do it: that one may have been replaced while its answer was on the way.
queue.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.shouldSwap) return;
  event.detail.shouldSwap = false;
  // Another language was chosen in another tab: half a page in each would be odd.
  if (event.detail.xhr.getResponseHeader("Content-Language") !== language) {
    location.reload();
    return;
  }
  const answer = document.createElement("template");
  answer.innerHTML = event.detail.serverResponse;
  for (const made of settle(answer.content)) htmx.process(made);
});
for (const id of PARTS) if (!LISTS.has(id)) remember(document.getElementById(id));
for (const row of document.getElementById("jobs").children) remember(row);

// Asking -------------------------------------------------------------------------------------------------------------

let asking = false, again = false, last = 0, timer = 0, pause = POLL, streaming = false;
const active = () => Number(document.getElementById("counts").dataset.active);

async function ask() {
  clearTimeout(timer);
  timer = 0;
  if (asking) {
    again = true;
    return;
  }
  asking = true;
  again = false;
  last = performance.now();
  const before = document.getElementById("counts").dataset.news;
  try {
    await htmx.ajax("GET", location.pathname + location.search, { source: queue, target: queue });
  } catch { /* a lost answer is like none: the next one comes */ }
  asking = false;
  const now = document.getElementById("counts").dataset.news;
  if (now !== before) {
    announce(now);
    pause = POLL;
  } else pause = Math.min(pause * 1.5, POLL_MAX);
  if (again) soon();
  else poll();
}

function soon() {
  clearTimeout(timer);
  timer = setTimeout(ask, Math.max(0, SOON - (performance.now() - last)));
}

/** Without a stream we look ourselves, less and less often, until nothing is under way. */
function poll() {
  if (!timer && active() > 0 && !document.hidden) timer = setTimeout(ask, streaming ? NET : pause);
}

// Listening. A hidden page lets go: browsers have only a few connections to one place, and many tabs.
let wire = null;

function listen() {
  if (wire || document.hidden) return;
  wire = document.createElement("div");
  wire.hidden = true;
  wire.setAttribute("hx-ext", "sse");
  wire.setAttribute("sse-connect", queue.dataset.stream);
  wire.setAttribute("hx-trigger", "sse:change");
  wire.addEventListener("htmx:sseOpen", () => { streaming = true; });
  wire.addEventListener("htmx:sseError", () => {
    if (streaming) {
      clearTimeout(timer);
      timer = 0;
    }
    streaming = false;
    poll();
  });
  wire.addEventListener("sse:change", soon);
  document.body.append(wire);
  htmx.process(wire);
}

function letGo() {
  if (wire) htmx.remove(wire);
  wire = null;
  streaming = false;
  clearTimeout(timer);
  timer = 0;
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) letGo();
  else {
    listen();
    soon();
  }
});
addEventListener("pagehide", letGo);
addEventListener("pageshow", (event) => { if (event.persisted) { listen(); soon(); } });

// A refused retry or cancel is said where the reader is, and the queue shows how things are.
queue.addEventListener("htmx:responseError", (event) => {
  if (event.detail.requestConfig.verb === "get") return;
  let said;
  try { said = explain(JSON.parse(event.detail.xhr.responseText)); } catch { /* not a problem document */ }
  announce(said ?? t("watching.not_done"), { seen: true });
  soon();
});

listen();
poll();
