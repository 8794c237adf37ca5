// Uploading: files are chosen or dropped, listed and checked, and sent in few requests. If the server asks us to wait, we
// do. Without this script, the form sends the files itself.

import { announce } from "../everywhere.js";
import { explain, size, t } from "../words.js";

const form = document.getElementById("upload");
const page = document.getElementById("send");
const picker = document.getElementById("files");
const list = document.getElementById("list");
const state = document.getElementById("state");
const go = document.getElementById("go");
const button = go.querySelector("button");
const MOST_BYTES = Number(form.dataset.maxBytes);
const MOST_FILES = Number(form.dataset.maxFiles);
const MOST_REQUEST = Number(form.dataset.maxRequest);
const LIMIT = t("sizes.megabytes", { number: MOST_BYTES / 1024 / 1024 });

const WANTED = /\.(pdf|xml|xlsx|xlsm|csv)$/i;
const WANTED_OF_FOLDER = /\.(pdf|xml)$/i;

/** @type {{file: File, element: HTMLElement, state: "ready" | "sending" | "sent" | "bad"}[]} */
let items = [];
let sending = false;

picker.required = false; // dropped files are not in the picker

// The list ------------------------------------------------------------------------------------------------------------

const files = (count) => t("convert.sending.files", { count });
const inState = (name) => items.filter((item) => item.state === name);

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

function draw(item) {
  const { file } = item;
  const name = make("span", "name", file.name);
  name.title = file.name;
  const remove = make("button", "bare remove");
  remove.type = "button";
  remove.setAttribute("aria-label", t("convert.sending.remove", { name: file.name }));
  remove.append(icon("away"));
  remove.addEventListener("click", () => drop(item));
  item.element = make("li", "file");
  item.element.append(icon("file"), name, make("span", "size", size(file.size)), remove);
  list.append(item.element);
}

/** Shows the state of a file. `why` says what is wrong with a bad one. */
function show(item, now, why) {
  item.state = now;
  const { element } = item;
  element.classList.toggle("sent", now === "sent");
  element.classList.toggle("bad", now === "bad");
  element.querySelector("use").setAttribute("href", { sent: "#i-complete", bad: "#i-failed" }[now] ?? "#i-file");
  element.querySelector(".why")?.remove();
  if (why) element.append(make("span", "why", why));
  let bar = element.querySelector("progress");
  if (now === "sending" && !bar) {
    bar = make("progress");
    bar.max = item.file.size || 1;
    bar.value = 0;
    bar.setAttribute("aria-label", t("convert.sending.sending_file", { name: item.file.name }));
    element.append(bar);
  } else if (now !== "sending") bar?.remove();
  element.querySelector(".remove").hidden = now === "sending" || now === "sent";
}

function drop(item) {
  const next = item.element.nextElementSibling ?? item.element.previousElementSibling;
  items = items.filter((each) => each !== item);
  item.element.remove();
  (next?.querySelector(".remove:not([hidden])") ?? picker).focus();
  announce(t("convert.sending.removed", { name: item.file.name }));
  tell();
}

function tell() {
  const ready = inState("ready").length, sent = inState("sent").length, bad = inState("bad").length;
  list.hidden = items.length === 0;
  page.classList.toggle("has-files", items.length > 0);
  go.classList.toggle("on", items.length > 0);
  if (sending) return;
  button.disabled = ready === 0 && sent === 0;
  button.textContent = ready === 0 && sent > 0 ? t("convert.sending.to_queue") : t("convert.sending.convert", { count: ready });
  state.textContent = sent > 0 && bad > 0 ? t("convert.sending.some_sent", { sent: files(sent), refused: bad })
    : bad > 0 ? t("convert.sending.refused", { count: bad }) : "";
}

function fits(name, start) {
  if (/\.csv$/i.test(name)) return true; // only the server looks at enough of it
  if (/\.xls[xm]$/i.test(name)) return start.startsWith("PK");
  return start.includes(/\.xml$/i.test(name) ? "<" : "%PDF-");
}

async function fault(file) {
  if (!WANTED.test(file.name)) return t("convert.sending.no_pdf");
  if (file.size === 0) return t("convert.sending.empty");
  if (file.size > MOST_BYTES) return t("convert.sending.too_large", { size: LIMIT });
  try {
    const start = new TextDecoder("latin1").decode(await file.slice(0, 1024).arrayBuffer());
    if (!fits(file.name, start)) return t("convert.sending.fake");
  } catch {
    return t("convert.sending.unreadable");
  }
  return null;
}

async function add(chosen) {
  let fresh = 0;
  for (const file of chosen) {
    const same = (item) => item.state !== "sent" && item.file.name === file.name && item.file.size === file.size
      && item.file.lastModified === file.lastModified;
    if (items.some(same)) continue;
    const item = { file, element: null, state: "ready" };
    items.push(item);
    draw(item);
    fresh += 1;
    const why = await fault(file);
    if (why) show(item, "bad", why);
  }
  tell();
  if (fresh) announce(t("convert.sending.added", { added: files(fresh), ready: files(inState("ready").length) }));
  if (fresh && !sending) button.focus({ preventScroll: true });
}

picker.addEventListener("change", () => {
  const chosen = [...picker.files];
  picker.value = "";
  add(chosen);
});

// Dropping files and folders anywhere on the page----------------------------------------------------------------------

let over = 0;
const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");

addEventListener("dragenter", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  over += 1;
  document.body.classList.add("over");
});
addEventListener("dragover", (event) => { if (carriesFiles(event)) event.preventDefault(); });
addEventListener("dragleave", (event) => {
  if (carriesFiles(event) && (over = Math.max(0, over - 1)) === 0) document.body.classList.remove("over");
});
addEventListener("drop", async (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  over = 0;
  document.body.classList.remove("over");
  // Entries must be taken before the first await: the browser clears them afterwards.
  const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  const plain = [...event.dataTransfer.files];
  add(entries.some((entry) => entry.isDirectory) ? (await Promise.all(entries.map(inside))).flat() : plain);
});

async function inside(entry) {
  if (entry.isFile) return [await new Promise((done, fail) => entry.file(done, fail))];
  const reader = entry.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (some.length === 0) break;
    found.push(...some);
  }
  const all = (await Promise.all(found.map(inside))).flat();
  // A folder may hold other files (notes, spreadsheets), which were not meant. A spreadsheet can be chosen itself.
  return all.filter((file) => WANTED_OF_FOLDER.test(file.name));
}

// Sending -------------------------------------------------------------------------------------------------------------

function batches(ready) {
  const made = [];
  let batch = [], bytes = 0;
  for (const item of ready) {
    if (batch.length && (batch.length === MOST_FILES || bytes + item.file.size > MOST_REQUEST)) {
      made.push(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(item);
    bytes += item.file.size;
  }
  return batch.length ? [...made, batch] : made;
}

/** Sends one request. Files are sent one after the other, so the bytes sent so far tell how far each file is. */
function post(batch, mapping) {
  return new Promise((done, fail) => {
    const body = new FormData();
    body.append("mapping", mapping);
    for (const { file } of batch) body.append("files", file, file.name);
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.to);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      let left = event.loaded;
      const percent = Math.floor((100 * event.loaded) / event.total);
      if (event.total) state.textContent = t("convert.sending.progress", { percent, size: size(event.total) });
      for (const { file, element } of batch) {
        const bar = element.querySelector("progress");
        if (bar) bar.value = Math.max(0, Math.min(file.size, left));
        left -= file.size;
      }
    });
    request.addEventListener("load", () => {
      let answer = null;
      try { answer = JSON.parse(request.responseText); } catch { /* a proxy's own page */ }
      done({ status: request.status, answer, retryAfter: Number(request.getResponseHeader("Retry-After")) || 0 });
    });
    request.addEventListener("error", fail);
    request.addEventListener("abort", fail);
    request.send(body);
  });
}

async function wait(seconds) {
  announce(t("convert.sending.wait", { count: seconds }));
  for (let left = seconds; left > 0; left -= 1) {
    state.textContent = t("convert.sending.pause", { count: left });
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function sendBatch(batch, mapping) {
  for (;;) {
    for (const item of batch) show(item, "sending");
    state.textContent = files(batch.length);
    const { status, answer, retryAfter } = await post(batch, mapping);
    if (status === 429 || status === 503) {
      await wait(Math.max(1, Math.ceil(retryAfter || 5)));
      continue;
    }
    const results = answer?.files;
    if (!Array.isArray(results)) {
      for (const item of batch) show(item, "bad", explain(answer) ?? t("convert.sending.not_sent"));
      return;
    }
    batch.forEach((item, at) => {
      const result = results[at];
      if (result?.job) show(item, "sent");
      else show(item, "bad", explain(result?.problem) ?? t("convert.sending.not_sent"));
    });
    return;
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (sending) return;
  const ready = inState("ready");
  if (ready.length === 0) {
    if (inState("sent").length) location.assign(form.dataset.then);
    return;
  }
  sending = true;
  button.disabled = true;
  button.textContent = t("convert.sending.sending");
  announce(t("convert.sending.sending_files", { count: ready.length }));
  let broken = false;
  for (const batch of batches(ready)) {
    try {
      await sendBatch(batch, form.elements.mapping.value);
    } catch {
      // Files that did not arrive can be sent again.
      for (const item of batch) if (item.state === "sending") show(item, "ready");
      broken = true;
      break;
    }
  }
  sending = false;
  tell();
  if (broken) {
    state.textContent = t("convert.sending.broken");
    announce(state.textContent);
    return;
  }
  if (items.every((item) => item.state === "sent")) location.assign(form.dataset.then);
  else announce(state.textContent);
});

// Leaving the page would interrupt the upload.
addEventListener("beforeunload", (event) => { if (sending) event.preventDefault(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

tell();
