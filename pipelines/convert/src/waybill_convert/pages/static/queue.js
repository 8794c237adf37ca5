// The live queue. htmx sends the requests and its SSE extension listens. This script decides when to ask, and updates the
// page without disturbing the reader.

import { announce, tellTimes } from "../everywhere.js";
import { explain, language, t } from "../words.js";

const htmx = window.htmx;
const queue = document.getElementById("queue");
const SOON = 400; // the minimum time between two requests
const POLL = 3000; // between polls without a stream; grows while nothing happens
const POLL_MAX = 15000;
const NET = 15000; // between polls beside a stream, in case it broke without notice

// Updating the page --------------------------------------------------------------------------------------------------

// A part is compared with what the server sent last under its id. Unchanged parts are not touched, so that focus, open
// folds and selected text stay.
const sent = new Map();
const LISTS = new Set(["jobs"]);
const PARTS = ["top", "counts", "hold", "jobs", "none", "pager"];

/** What the server sent, without relative times, which this browser updates itself. */
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
    // Only rows in the wrong place are moved, because moving takes the focus away.
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

// This replaces htmx's swap, which would replace everything. It would also read its settings from the element that was
// pressed, which may have been replaced since.
queue.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.shouldSwap) return;
  event.detail.shouldSwap = false;
  // Another language was chosen in another tab: reload the page rather than mix languages.
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

// Requests -----------------------------------------------------------------------------------------------------------

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
  } catch { /* the next request will tell */ }
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

/** Without a stream, poll less and less often, until nothing is in progress. */
function poll() {
  if (!timer && active() > 0 && !document.hidden) timer = setTimeout(ask, streaming ? NET : pause);
}

// Listening. A hidden page closes its stream: browsers allow only a few connections to one site.
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

// A refused retry or cancel is announced, and the queue is updated.
queue.addEventListener("htmx:responseError", (event) => {
  if (event.detail.requestConfig.verb === "get") return;
  let said;
  try { said = explain(JSON.parse(event.detail.xhr.responseText)); } catch { /* not a problem document */ }
  announce(said ?? t("convert.watching.not_done"), { seen: true });
  soon();
});

listen();
poll();
