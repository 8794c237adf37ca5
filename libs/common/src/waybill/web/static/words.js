// The reader's language in a browser: the messages that the page brought along, and numbers, sizes and times as
// languages/language.py writes them.

const given = JSON.parse(document.getElementById("words").textContent);
const HOLE = /\{(\w+)\}/g;

export const language = document.documentElement.lang;

export const number = (value, digits = 0) => new Intl.NumberFormat(language, {
  minimumFractionDigits: digits, maximumFractionDigits: digits,
}).format(value);

const fill = (text, values) => text.replace(HOLE, (_, name) => {
  const value = values[name];
  return typeof value === "number" ? number(value) : value;
});

/** A message by its key, with its holes filled. `count` chooses between one and other. */
export function t(key, values = {}) {
  const message = given.messages[key];
  const form = typeof message === "string" ? message : values.count === 1 ? message.one : message.other;
  return fill(form, values);
}

// Errors. The API speaks English; the catalogue knows its sentences, and else what their codes mean.
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
const known = Object.entries(given.known).map(([english, own]) => {
  const pattern = english.split(/\{\w+\}/).map(escaped).join("(.+?)");
  return { pattern: new RegExp(`^${pattern}$`), names: [...english.matchAll(HOLE)].map((hole) => hole[1]), own };
});

/** What a problem document says, for the reader; undefined if it says nothing. */
export function explain(problem) {
  const said = problem?.detail;
  if (!said || known.length === 0) return said;
  for (const { pattern, names, own } of said.length > 1000 ? [] : known) {
    const found = pattern.exec(said);
    if (!found) continue;
    const values = Object.fromEntries(names.map((name, at) => [name, found[at + 1]]));
    values.status = given.messages[`states.${values.status}`] ?? values.status;
    return fill(own, values);
  }
  return given.messages[`errors.${problem.code}`];
}

export function size(bytes) {
  if (bytes < 1000) return t("sizes.bytes", { number: bytes });
  if (bytes < 999500) return t("sizes.kilobytes", { number: number(bytes / 1000) });
  return t("sizes.megabytes", { number: number(bytes / 1e6, 1) });
}

const MINUTE = 60, HOUR = 3600, DAY = 86400;
const months = t("dates.short_months").split(" ");

const date = (moment) => t("dates.short", {
  day: moment.getDate(), month: months[moment.getMonth()], year: String(moment.getFullYear()),
});

export function ago(moment, now) {
  const seconds = (now - moment) / 1000;
  if (seconds < 45) return t("times.now");
  if (seconds < 45 * MINUTE) return t("times.minutes", { count: Math.max(1, Math.round(seconds / MINUTE)) });
  if (seconds < 22 * HOUR) return t("times.hours", { count: Math.max(1, Math.round(seconds / HOUR)) });
  const days = Math.round(seconds / DAY);
  if (days <= 1) return t("times.yesterday");
  return days < 7 ? t("times.days", { count: days }) : date(moment);
}

// As the browser's owner writes them, if it is their language that the page speaks.
const place = navigator.languages.find((each) => each.split("-")[0] === language) ?? language;
const exact = new Intl.DateTimeFormat(place, { dateStyle: "long", timeStyle: "medium" });

export const exactly = (moment) => exact.format(moment);
