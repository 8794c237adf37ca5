// What every page has: colours at once, times that go on, ids to copy, and one polite voice for screen readers.

const news = document.getElementById("news");

let hiding = 0, next = "";

/** Says something to who cannot see it, and on request to everybody. The same words twice are not said twice, and what
 * everybody is to see has its time: other news wait for it. */
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

// Colours. Without a script the form reloads the page; with one, only the choice is sent.
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

// Times. The words are those of words.py.
const MINUTE = 60, HOUR = 3600, DAY = 86400;
const dated = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "long", timeStyle: "medium" });

function ago(moment, now) {
  const seconds = (now - moment) / 1000;
  if (seconds < 45) return "just now";
  if (seconds < 45 * MINUTE) return `${Math.max(1, Math.round(seconds / MINUTE))} min ago`;
  if (seconds < 22 * HOUR) return `${Math.max(1, Math.round(seconds / HOUR))} h ago`;
  const days = Math.round(seconds / DAY);
  if (days <= 1) return "yesterday";
  return days < 7 ? `${days} days ago` : dated.format(moment);
}

export function tellTimes(within = document) {
  const now = new Date();
  for (const time of within.querySelectorAll("time")) {
    const moment = new Date(time.dateTime);
    const words = ago(moment, now);
    if (time.textContent !== words) time.textContent = words;
    if (!time.dataset.local) {
      time.dataset.local = "1";
      time.title = exact.format(moment);
    }
  }
}
tellTimes();
setInterval(tellTimes, 20000);

// Copying. The icon answers, and so does the voice.
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const use = button.querySelector("use");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    use?.setAttribute("href", "#i-complete");
    announce("Job id copied");
  } catch {
    // No clipboard here (plain HTTP): show the whole id, to be copied by hand.
    button.querySelector("span").textContent = button.dataset.copy;
    getSelection()?.selectAllChildren(button);
  }
  setTimeout(() => use?.setAttribute("href", "#i-copy"), 1500);
});
