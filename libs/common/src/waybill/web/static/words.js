// The reader's language in a browser: the messages that the page brought along, and numbers, sizes and times as
// waybill/messages/language.py writes them.

const { messages } = JSON.parse(document.getElementById("words").textContent);
const HOLE = /\{(\w+)(?::([\w.]+))?\}/g;

export const language = document.documentElement.lang;

export const number = (value, digits = 0) => new Intl.NumberFormat(language, {
  minimumFractionDigits: digits, maximumFractionDigits: digits,
}).format(value);

const fill = (text, values) => text.replace(HOLE, (_, name, form) => {
  const value = values[name];
  if (form === "time") return exactly(new Date(value));
  if (form) return messages[`${form}.${value}`] ?? value;
  if (Array.isArray(value)) return value.join(", ");
  if (value?.code) return explain({ ...value, detail: value.message });
  return typeof value === "number" ? number(value) : value;
});

/** A message by its key, with its holes filled. `count` chooses between one and other. */
export function t(key, values = {}) {
  const message = messages[key];
  const form = typeof message === "string" ? message : values.count === 1 ? message.one : message.other;
  return fill(form, values);
}

/** What a problem document says to the reader: by its key, in English by its own sentence, else by what its code means.
 * Undefined if it says nothing. */
export function explain(problem) {
  if (problem?.key && Object.hasOwn(messages, problem.key)) return t(problem.key, problem.params);
  return (language === "en" && problem?.detail) || messages[`errors.${problem?.code}`];
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

// In the browser's own region, if the page is in its language.
const place = navigator.languages.find((each) => each.split("-")[0] === language) ?? language;
const exact = new Intl.DateTimeFormat(place, { dateStyle: "long", timeStyle: "medium" });

export const exactly = (moment) => exact.format(moment);
