// The live part of /ops: it is fetched every few seconds, and only what changed is replaced. What somebody is typing,
// choosing or reading stays as it is.

import { announce, tellTimes } from "./everywhere.js";
import { language } from "./words.js";

const EVERY = 5000;
const SLOWEST = 60000; // while the server does not answer
const live = document.getElementById("live");
let pause = EVERY, timer = 0, asking = false;

/** What the server sent, without relative times, which this browser updates itself. */
function said(part) {
  const copy = part.cloneNode(true);
  for (const time of copy.querySelectorAll("time")) time.replaceWith(time.dateTime);
  for (const open of copy.querySelectorAll("details[open]")) open.removeAttribute("open");
  return copy.innerHTML;
}

const parts = () => [...live.querySelectorAll("section[id]")];
const sent = new Map(parts().map((part) => [part.id, said(part)]));

/** Whether a reader is in the middle of something: an open form, a choice, a selected text. */
function busy(part) {
  const selected = getSelection();
  return part.querySelector("input:checked, details.act[open], input:focus, select:focus")
    || (selected && !selected.isCollapsed && part.contains(selected.anchorNode));
}

function replace(old, fresh) {
  const open = [...old.querySelectorAll("details[open]")].map((each) => each.id);
  const focusable = "a, button, summary";
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const place = focused ? [...old.querySelectorAll(focusable)].indexOf(focused) : -1;
  const scrolled = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  old.replaceChildren(...fresh.childNodes);
  for (const id of open) if (id) document.getElementById(id)?.setAttribute("open", "");
  old.querySelectorAll(".scroll").forEach((each, number) => { each.scrollLeft = scrolled[number] ?? 0; });
  if (place >= 0) old.querySelectorAll(focusable)[place]?.focus({ preventScroll: true });
}

function settle(text) {
  const answer = document.createElement("template");
  answer.innerHTML = text;
  for (const old of parts()) {
    const fresh = answer.content.getElementById(old.id);
    if (!fresh) continue;
    const words = said(fresh);
    if (sent.get(old.id) === words || busy(old)) continue;
    sent.set(old.id, words);
    const before = old.querySelector(".verdict")?.textContent;
    replace(old, fresh);
    const now = old.querySelector(".verdict")?.textContent;
    if (now && now !== before) announce(now);
  }
  tellTimes(live);
}

async function ask() {
  timer = 0;
  if (asking || document.hidden) return;
  asking = true;
  try {
    const answer = await fetch(location.pathname + location.search, { headers: { "HX-Request": "true" } });
    // Signed out, or another language was chosen in another tab: the whole page is needed.
    if (answer.status === 401 || answer.status === 403 || answer.headers.get("Content-Language") !== language) {
      location.reload();
      return;
    }
    if (!answer.ok) throw new Error(answer.statusText);
    settle(await answer.text());
    pause = EVERY;
  } catch {
    pause = Math.min(pause * 2, SLOWEST);
  } finally {
    asking = false;
  }
  soon(pause);
}

function soon(wait) {
  clearTimeout(timer);
  timer = setTimeout(ask, wait);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(0); });
soon(EVERY);
