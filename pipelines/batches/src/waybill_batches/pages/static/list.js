// The list of batches, as it changes.

import { follow, partOf, remember, settle } from "./live.js";

const PARTS = ["top", "batches", "none", "pager"];

remember(PARTS, "batches");
follow(async () => settle(await partOf(location.href), PARTS, "batches"));
