// The rules of a batch: which files are converted by which mapping. It begins without any.

import { t } from "../words.js";

export class RuleEditor {
  constructor(form) {
    this.list = form.querySelector("#rule-list");
    this.most = Number(form.dataset.maxRules);
    this.field = form.elements.rules;
    this.suggest = form.querySelector("#suggest");
    this.add = form.querySelector("#add-rule");
    this.mappings = [{ name: "auto", title: t("batches.rule.auto") }];
    this.suggest.addEventListener("click", () => this.append("*.pdf", "auto"));
    this.add.addEventListener("click", () => this.append("", "auto"));
    this.loaded = this.#load(form.dataset.mappings);
    this.#tell();
  }

  async #load(address) {
    try {
      const { choices } = await (await fetch(address)).json();
      this.mappings.push(...choices.filter((each) => each.name !== "auto"));
    } catch { /* then documents choose their mapping themselves */ }
    this.mappings.push({ name: "", title: t("batches.rule.none") });
    for (const select of this.list.querySelectorAll("select")) this.#fill(select, select.value);
  }

  #fill(select, chosen) {
    const known = this.mappings.some((each) => each.name === chosen);
    const options = known ? this.mappings : [...this.mappings, { name: chosen, title: chosen }];
    select.replaceChildren(...options.map((each) => new Option(each.title, each.name, false, each.name === chosen)));
  }

  append(pattern, mapping, { focus = true } = {}) {
    const row = document.createElement("li");
    const text = document.createElement("input");
    text.value = pattern;
    text.placeholder = "*.pdf";
    text.maxLength = 200;
    text.spellcheck = false;
    text.setAttribute("aria-label", t("batches.rule.pattern"));
    text.setAttribute("aria-describedby", "rules-why");
    const arrow = document.createElement("span");
    arrow.textContent = "→";
    arrow.setAttribute("aria-hidden", "true");
    const select = document.createElement("select");
    select.setAttribute("aria-label", t("batches.rule.mapping"));
    this.#fill(select, mapping);
    const remove = document.createElement("button");
    remove.type = "button";
    remove.className = "bare";
    remove.setAttribute("aria-label", t("batches.rule.remove"));
    remove.append(this.suggest.closest("form").querySelector(".remove svg").cloneNode(true));
    remove.addEventListener("click", () => {
      const next = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
      this.#tell();
      (next?.querySelector("input") ?? this.add).focus();
    });
    row.append(text, arrow, select, remove);
    this.list.append(row);
    this.#tell();
    if (focus) text.focus();
  }

  #tell() {
    this.suggest.hidden = this.list.children.length > 0;
    this.add.hidden = this.list.children.length >= this.most;
  }

  /** The rules as the form's field has them. Rows without a pattern are none. */
  get text() {
    const rules = [...this.list.children].map((row) => ({
      pattern: row.querySelector("input").value.trim(),
      mapping: row.querySelector("select").value,
    }));
    const wanted = rules.filter((each) => each.pattern);
    return wanted.length ? JSON.stringify(wanted) : "";
  }

  set text(text) {
    this.list.replaceChildren();
    let rules = [];
    try { rules = JSON.parse(text || "[]"); } catch { /* none, then */ }
    for (const { pattern, mapping } of rules) this.append(pattern, mapping, { focus: false });
    this.#tell();
  }
}
