// A batch's summary, which changes when files are retried.

import { follow, partOf, remember, settle } from "./live.js";

const PARTS = ["top", "summary"];
const { batch } = document.getElementById("live").dataset;

remember(PARTS);
follow(async () => settle(await partOf(location.href), PARTS), {
  every: 1000,
  wanted: (batches) => batches.some((each) => each.id === batch),
});
