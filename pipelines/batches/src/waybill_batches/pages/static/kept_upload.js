// What is being sent, kept by the browser: a page that is reloaded knows what was interrupted, and has the file to go on
// with. It is kept for whoever began it only, for a day, and removed as soon as it has arrived.

const NAME = "waybill-batches", STORE = "upload", KEY = "current";
const A_DAY = 86400000;

function opened() {
  return new Promise((done, fail) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });
}

async function within(mode, work) {
  const database = await opened();
  try {
    return await new Promise((done, fail) => {
      const change = database.transaction(STORE, mode);
      const request = work(change.objectStore(STORE));
      change.oncomplete = () => done(request.result);
      change.onabort = change.onerror = () => fail(change.error);
    });
  } finally {
    database.close();
  }
}

/** Keeps an upload. False if the browser will not, for want of room or because it keeps nothing. */
export async function keep(upload) {
  try {
    await within("readwrite", (store) => store.put(upload, KEY));
    return true;
  } catch {
    return false;
  }
}

export async function forget() {
  try { await within("readwrite", (store) => store.delete(KEY)); } catch { /* then nothing was kept */ }
}

/** The upload that was interrupted; null if there is none of this owner. */
export async function kept(owner) {
  try {
    const found = await within("readonly", (store) => store.get(KEY));
    if (!found) return null;
    if (found.owner === owner && Date.now() - found.begun < A_DAY) return found;
  } catch {
    return null;
  }
  await forget();
  return null;
}
