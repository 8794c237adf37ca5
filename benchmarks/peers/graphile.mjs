// graphile-worker as a contestant, with the batching that its performance page recommends: a local queue and batched
// completions. It has the same four verbs as program.py, which describes them.

import dgram from "node:dgram";
import readline from "node:readline";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const url = process.env.BENCH_DATABASE_URL;
const settings = JSON.parse(process.env.BENCH_SETTINGS || "{}");
const logger = new Logger(() => () => {}); // a log line per job would slow it down considerably
const [verb, count] = process.argv.slice(2);

async function withUtils(use) {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  try {
    return await use(utils);
  } finally {
    await utils.release();
  }
}

async function fill(jobs) {
  const batch = 10_000;
  await withUtils(async (utils) => {
    for (let start = 0; start < jobs; start += batch) {
      const size = Math.min(batch, jobs - start);
      await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "noop", payload: {} })));
    }
  });
}

async function work() {
  const socket = dgram.createSocket("udp4");
  const tasks = {
    noop: async () => {},
    pick_up: async ({ sample }) => {
      const at = process.hrtime.bigint(); // CLOCK_MONOTONIC, like Python's time.monotonic_ns
      socket.send(`${sample} ${at}`, Number(process.env.BENCH_PORT), "127.0.0.1");
    },
  };
  const runner = await run({ preset: { worker: { connectionString: url, ...settings } }, taskList: tasks, logger });
  await runner.promise;
}

async function feed() {
  const addJob = "select graphile_worker.add_job('pick_up', json_build_object('sample', $1::int))";
  await withUtils((utils) =>
    utils.withPgClient(async (client) => {
      for await (const line of readline.createInterface({ input: process.stdin })) {
        await client.query("begin");
        await client.query(addJob, [line]);
        await client.query("commit");
        process.stdout.write(`${process.hrtime.bigint()}\n`);
      }
    }),
  );
}

const verbs = { prepare: () => withUtils((utils) => utils.migrate()), fill: () => fill(Number(count)), work, feed };
await verbs[verb]();
