// Sending a ZIP. What is being sent is kept by the browser, so that a reload of the page does not lose it: the upload then
// goes on by itself from the beginning, or the page says what was interrupted and asks for the file again. The server
// recognises the same ZIP and the same key, so nothing is worked twice. Without this script, the form sends the ZIP.

import { announce } from "../everywhere.js";
import { explain, size, t } from "../words.js";
import { forget, keep, kept } from "./kept_upload.js";
import { RuleEditor } from "./rule_editor.js";

const form = document.getElementById("upload");
const page = document.getElementById("send");
const picker = document.getElementById("zip");
const chosen = document.getElementById("chosen");
const row = document.getElementById("file");
const bar = row.querySelector("progress"), why = row.querySelector(".why"), remove = row.querySelector(".remove");
const button = document.getElementById("go").querySelector("[type=submit]");
const stop = document.getElementById("stop");
const state = document.getElementById("state");
const note = document.getElementById("interrupted");
const owner = form.dataset.owner;
const mostBytes = Number(form.dataset.maxBytes);
const limit = t("sizes.megabytes", { number: mostBytes / 1024 / 1024 });
const rules = new RuleEditor(form);

let file = null, sending = null, safe = false;
let id = "", wished = ""; // an id is for one file with one name and the same rules
picker.required = false; // a dropped file is not in the picker
form.elements.rules.disabled = true;

// Choosing -------------------------------------------------------------------------------------------------------------

async function fault(given) {
  if (given.size === 0) return t("batches.sending.empty");
  if (given.size > mostBytes) return t("batches.sending.too_large", { size: limit });
  try {
    const [first, second] = new Uint8Array(await given.slice(0, 2).arrayBuffer());
    if (first !== 0x50 || second !== 0x4b) return t("batches.sending.no_zip");
  } catch {
    return t("batches.sending.unreadable");
  }
  return "";
}

async function choose(given) {
  if (sending || !given) return;
  file = given;
  id = "";
  row.querySelector(".name").textContent = row.querySelector(".name").title = file.name;
  row.querySelector(".size").textContent = size(file.size);
  remove.setAttribute("aria-label", t("batches.sending.remove", { name: file.name }));
  const wrong = await fault(file);
  why.textContent = wrong;
  why.hidden = !wrong;
  row.classList.toggle("bad", Boolean(wrong));
  if (wrong) file = null;
  show();
  announce(wrong ? `${given.name}: ${wrong}` : t("batches.sending.chosen", { name: given.name }));
  (wrong ? picker : button).focus({ preventScroll: true });
}

function show() {
  const named = file !== null || !why.hidden;
  chosen.hidden = !named;
  page.classList.toggle("has-files", named);
  document.getElementById("go").classList.toggle("on", file !== null);
  page.classList.toggle("ready", file !== null);
  page.classList.toggle("sending", sending !== null);
  bar.hidden = stop.hidden = sending === null;
  remove.hidden = sending !== null;
  button.disabled = sending !== null || file === null;
  button.textContent = sending ? t("batches.sending.sending") : t("batches.sending.start");
  document.getElementById("wishes").inert = sending !== null;
}

function clear() {
  file = null;
  why.hidden = true;
  state.textContent = "";
  show();
}

picker.addEventListener("change", () => {
  const [given] = picker.files;
  picker.value = "";
  choose(given);
});
remove.addEventListener("click", () => {
  clear();
  forget();
  picker.focus();
});

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
addEventListener("drop", (event) => {
  if (!carriesFiles(event)) return;
  event.preventDefault();
  over = 0;
  document.body.classList.remove("over");
  choose(event.dataTransfer.files[0]);
});

// Sending --------------------------------------------------------------------------------------------------------------

function post(upload) {
  return new Promise((done, fail) => {
    const body = new FormData();
    body.append("name", upload.title);
    body.append("rules", upload.rules);
    body.append("file", file, file.name);
    const request = new XMLHttpRequest();
    request.open("POST", form.dataset.to);
    request.setRequestHeader("Accept", "application/json");
    request.setRequestHeader("Idempotency-Key", upload.id);
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      bar.value = event.loaded / event.total;
      const percent = Math.floor((100 * event.loaded) / event.total);
      state.textContent = percent < 100 ? t("batches.sending.progress", { percent, size: size(file.size) })
        : t("batches.sending.arrived");
    });
    request.addEventListener("load", () => {
      let answer = null;
      try { answer = JSON.parse(request.responseText); } catch { /* a proxy's own page */ }
      done({ status: request.status, answer, retryAfter: Number(request.getResponseHeader("Retry-After")) || 0 });
    });
    request.addEventListener("error", fail);
    request.addEventListener("abort", fail);
    sending = request;
    request.send(body);
  });
}

async function wait(seconds) {
  announce(t("batches.sending.wait", { count: seconds }));
  for (let left = seconds; left > 0 && sending; left -= 1) {
    state.textContent = t("batches.sending.pause", { count: left });
    await new Promise((done) => setTimeout(done, 1000));
  }
}

const made = () => [...crypto.getRandomValues(new Uint8Array(16))]
  .map((each) => each.toString(16).padStart(2, "0")).join("");

async function send() {
  const title = form.elements.name.value, wishes = JSON.stringify([title, rules.text]);
  if (!id || wishes !== wished) id = made();
  wished = wishes;
  const upload = { id, owner, name: file.name, bytes: file.size, title, rules: rules.text, begun: Date.now(), file: null };
  sending = true; // until there is a request
  note.hidden = true;
  bar.value = 0;
  show();
  announce(t("batches.sending.sending_file", { name: file.name }));
  safe = false;
  await keep(upload);
  if (!sending) return; // it was stopped
  keep({ ...upload, file }).then((done) => { safe = done; });
  try {
    for (;;) {
      const { status, answer, retryAfter } = await post(upload);
      if (status === 429 || status === 503) {
        await wait(Math.max(1, Math.ceil(retryAfter || 5)));
        if (!sending) return;
        continue;
      }
      await forget();
      if (answer?.batch?.id) {
        safe = true;
        state.textContent = t("batches.sending.arrived");
        location.assign(form.dataset.then + answer.batch.id);
        return;
      }
      failed(explain(answer) ?? t("batches.sending.not_sent"));
      return;
    }
  } catch {
    if (!sending) return; // it was stopped
    sending = null;
    show();
    state.textContent = t("batches.sending.broken");
    announce(state.textContent);
  }
}

function failed(said) {
  sending = null;
  why.textContent = said;
  why.hidden = false;
  row.classList.add("bad");
  state.textContent = "";
  show();
  announce(said);
}

/** Only one tab sends. Browsers tell us so only over HTTPS; elsewhere a person has to press the button. */
const alone = (work, options = {}) => (navigator.locks
  ? navigator.locks.request("waybill-batch-upload", options, work) : work(true));

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (sending || !file) return;
  why.hidden = true;
  row.classList.remove("bad");
  alone(async (lock) => {
    if (lock !== null) return send();
    tell(t("batches.sending.other_tab"));
    return undefined;
  }, navigator.locks ? { ifAvailable: true } : {});
});
stop.addEventListener("click", () => {
  const request = sending;
  sending = null;
  if (request?.abort) request.abort();
  forget();
  state.textContent = t("batches.sending.stopped");
  announce(state.textContent);
  show();
  button.focus();
});
// What is kept goes on after a reload. What is not would be lost.
addEventListener("beforeunload", (event) => { if (sending && !safe) event.preventDefault(); });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// After a reload -------------------------------------------------------------------------------------------------------

function tell(said, ...buttons) {
  note.hidden = false;
  note.querySelector("p").textContent = said;
  note.querySelector(".row").replaceChildren(...buttons.map(([words, act]) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "quiet";
    made.textContent = words;
    made.addEventListener("click", act);
    return made;
  }));
  announce(said);
}

async function goOn(found) {
  form.elements.name.value = found.title;
  rules.text = found.rules;
  const whole = found.file && await fault(found.file) === "";
  const values = { name: found.name, size: size(found.bytes) };
  const drop = [t("batches.sending.drop_it"), () => { note.hidden = true; forget(); }];
  if (!whole) {
    tell(t("batches.sending.choose_again", values), [t("batches.sending.choose"), () => picker.click()], drop);
    return;
  }
  await choose(found.file);
  if (!file) return;
  id = found.id;
  wished = JSON.stringify([form.elements.name.value, rules.text]);
  if (!navigator.locks) {
    tell(t("batches.sending.interrupted", values), drop);
    return;
  }
  const going = send();
  tell(t("batches.sending.goes_on", values));
  await going;
}

async function look() {
  if (await kept(owner) === null) return;
  await alone(async (lock) => {
    if (lock === null) {
      tell(t("batches.sending.other_tab"));
      // Once the other tab has ended, look again what it left.
      alone(async () => { note.hidden = true; }).then(look);
      return;
    }
    const found = await kept(owner);
    if (found !== null && !sending) await goOn(found);
  }, navigator.locks ? { ifAvailable: true } : {});
}

show();
look();
