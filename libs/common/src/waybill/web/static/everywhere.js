// For every page: the colour switch, relative times, buttons that copy ids, and announcements for screen readers.

import { ago, exactly, t } from "./words.js";

const news = document.getElementById("news");

let hiding = 0, next = "";

/** Announces something to screen readers, and with `seen` to everybody. The same words are not announced twice in a row.
 * A visible announcement stays for a while, and others wait for it. */
export function announce(text, { seen = false } = {}) {
  if (!news) return;
  if (hiding && !seen) {
    next = text;
    return;
  }
  if (news.textContent !== text) news.textContent = text;
  if (!seen) return;
  news.classList.add("seen");
  clearTimeout(hiding);
  hiding = setTimeout(() => {
    hiding = 0;
    news.classList.remove("seen");
    if (next) announce(next);
    next = "";
  }, 8000);
}

// Colours. Without scripts, the form reloads the page; here we only send the choice.
const theme = document.querySelector("form.theme");
theme?.addEventListener("submit", (event) => {
  const choice = event.submitter?.value ?? "";
  event.preventDefault();
  if (choice) document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
  for (const button of theme.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(button.value === choice));
  }
  const form = new URLSearchParams({ theme: choice, back: "/" });
  fetch(theme.action, { method: "POST", body: form, redirect: "manual" }).catch(() => {});
});

// Times, by the browser's clock and in its time zone.
export function tellTimes(within = document) {
  const now = new Date();
  for (const time of within.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    const words = ago(moment, now);
    if (time.textContent !== words) time.textContent = words;
    if (!time.dataset.local) {
      time.dataset.local = "1";
      time.title = exactly(moment);
    }
  }
}
tellTimes();
setInterval(tellTimes, 20000);

// Copying. The icon changes, and it is announced.
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const use = button.querySelector("use");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    use?.setAttribute("href", "#i-complete");
    announce(t("everywhere.copied"));
  } catch {
    // Browsers have no clipboard over plain HTTP: show and select the whole id, to be copied by hand.
    button.querySelector("span").textContent = button.dataset.copy;
    getSelection()?.selectAllChildren(button);
  }
  setTimeout(() => use?.setAttribute("href", "#i-copy"), 1500);
});
