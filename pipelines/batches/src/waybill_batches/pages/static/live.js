// What the pages of batches have in common: they listen to the stream, ask for the part of the page that changes, and
// replace what is different without disturbing the reader. Buttons send their forms, and the part is asked for again.

import { announce, tellTimes } from "../everywhere.js";
import { explain, language, t } from "../words.js";

const PART = { "Waybill-Part": "1" };
const POLL = 5000; // between two requests if there is no stream
const live = document.getElementById("live");

/** The part of an address that changes, as a fragment. A page in another language is reloaded instead. */
export async function partOf(address) {
  const answer = await asked(address);
  const made = document.createElement("template");
  made.innerHTML = await answer.text();
  return made.content;
}

export async function asked(address) {
  const answer = await fetch(address, { headers: PART });
  if (answer.status === 404) location.reload(); // somebody has deleted it
  if (!answer.ok) throw new Error(String(answer.status));
  // Another language was chosen in another tab: do not mix languages.
  if (answer.headers.get("Content-Language") !== language) location.reload();
  return answer;
}

// Replacing. A part is compared with what the server sent last under its id.

const sent = new Map();

/** What the server sent, without relative times, which this browser updates itself. */
function said(element) {
  const copy = element.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  for (const open of copy.querySelectorAll("details[open]")) open.removeAttribute("open");
  return copy.outerHTML;
}

const CONTROLS = "a, button, summary, input, select";

function replace(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const place = focused && [...old.querySelectorAll(CONTROLS)].indexOf(focused);
  for (const each of old.querySelectorAll("details[open][id]")) {
    fresh.querySelector(`#${CSS.escape(each.id)}`)?.setAttribute("open", "");
  }
  sent.set(fresh.id, said(fresh));
  old.replaceWith(fresh);
  if (focused) {
    const again = (focused.id && document.getElementById(focused.id))
      || fresh.querySelectorAll(CONTROLS)[place] || fresh.querySelector(CONTROLS);
    again?.focus({ preventScroll: true });
  }
}

function reconcile(list, fresh) {
  const wanted = [...fresh.children];
  const ids = new Set(wanted.map((each) => each.id));
  for (const old of [...list.children]) {
    if (ids.has(old.id)) continue;
    sent.delete(old.id);
    old.remove();
  }
  wanted.forEach((row, at) => {
    const old = document.getElementById(row.id);
    if (!old) {
      sent.set(row.id, said(row));
      row.classList.add("fresh");
      list.insertBefore(row, list.children[at] ?? null);
    } else if (sent.get(row.id) !== said(row)) replace(old, row);
  });
}

/** Keeps what the server sent with the page, to see later what has changed. */
export function remember(ids, list) {
  for (const id of ids) {
    const element = document.getElementById(id);
    for (const each of id === list ? element.children : [element]) sent.set(each.id, said(each));
  }
}

/** Puts the parts of these ids in place; of a list, one by one. */
export function settle(fragment, ids, list) {
  for (const id of ids) {
    const fresh = fragment.querySelector(`#${id}`), old = document.getElementById(id);
    if (!fresh || !old) continue;
    if (id === list) reconcile(old, fresh);
    else if (sent.get(id) !== said(fresh)) replace(old, fresh);
  }
  tellTimes(live);
}

// Following. A request follows a change, at most one in `every` milliseconds, and never two at once.

/** Calls `ask` after changes. `wanted` says whether a change concerns this page. */
export function follow(ask, { every = 500, wanted = () => true } = {}) {
  let stream = null, asking = false, again = false, timer = 0, last = -Infinity, polling = 0;
  const top = () => document.getElementById("top").dataset;

  async function now() {
    timer = 0;
    asking = true;
    again = false;
    const before = top().news;
    try { await ask(); } catch { /* the next change will tell */ }
    asking = false;
    last = performance.now();
    if (top().news !== before && top().news) announce(top().news);
    if (again) soon();
  }

  function soon() {
    if (asking) again = true;
    else if (!timer) timer = setTimeout(now, Math.max(0, every - (performance.now() - last)));
  }

  function listen() {
    if (stream || document.hidden) return;
    stream = new EventSource(live.dataset.stream);
    stream.addEventListener("change", (event) => {
      let batches = [];
      try { ({ batches } = JSON.parse(event.data)); } catch { /* something changed all the same */ }
      if (wanted(batches)) soon();
    });
    // The browser reconnects by itself, unless it was refused. Then we ask now and then.
    stream.addEventListener("error", () => {
      if (stream?.readyState !== EventSource.CLOSED || polling) return;
      polling = setInterval(() => { if (Number(top().active) > 0 && !document.hidden) soon(); }, POLL);
    });
  }

  function letGo() {
    stream?.close();
    stream = null;
    clearInterval(polling);
    clearTimeout(timer);
    polling = timer = 0;
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

  // Buttons. A refused one is announced.
  live.addEventListener("submit", async (event) => {
    const form = event.target.closest("form.does");
    if (!form) return;
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.getAttribute("aria-disabled")) return;
    button.setAttribute("aria-disabled", "true");
    let why = t("batches.watching.not_done");
    try {
      const answer = await fetch(form.action, { method: "POST", headers: PART });
      if (answer.ok) {
        why = "";
        if (form.dataset.then && form.dataset.then !== location.pathname) {
          location.assign(form.dataset.then);
          return;
        }
      } else why = explain(await answer.json()) ?? why;
    } catch { /* the connection is gone */ }
    button.removeAttribute("aria-disabled");
    if (why) announce(why, { seen: true });
    soon();
  });

  listen();
  return soon;
}
