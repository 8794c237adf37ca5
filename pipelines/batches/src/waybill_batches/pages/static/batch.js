// One batch: what stands above its table, and the files in it, of which one can be looked at in a dialog.

import { announce } from "../everywhere.js";
import { t } from "../words.js";
import { FileTable } from "./file_table.js";
import { follow, partOf, remember, settle } from "./live.js";

const PARTS = ["top", "counts", "none"];
const { batch } = document.getElementById("live").dataset;
const dialog = document.getElementById("look");
const looked = document.getElementById("looked");

const total = () => Number(document.getElementById("counts").dataset.total);
const table = new FileTable(document.getElementById("files"), total);

/** The server does not look at rows to say what stands above them. */
const tellNone = () => { document.getElementById("none").hidden = table.count > 0; };

document.getElementById("pager")?.remove(); // every row can be scrolled to
remember(PARTS);
follow(async () => {
  settle(await partOf(location.href), PARTS);
  await table.refresh();
  tellNone();
}, { every: 1000, wanted: (batches) => batches.some((each) => each.id === batch) });

// Looking at one file. With another key or button, the link opens its page as usual.
document.getElementById("files").addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-file]");
  if (!link || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  try {
    looked.replaceChildren(await partOf(link.href));
  } catch {
    announce(t("batches.watching.not_done"), { seen: true });
    return;
  }
  dialog.showModal();
  looked.focus();
  looked.scrollTop = 0;
});
// A click beside the dialog closes it.
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
