"""`waybill jobs explain`: why a job is in its state, in one sentence."""

from __future__ import annotations

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, styled
from waybill.db import Database
from waybill_cli.job_ids import JobArgument
from waybill_engine.explain import Explanation
from waybill_engine.explain import explain as explain_job


def explain(job: JobArgument, as_json: AsJson = False) -> None:
    """Explain in one sentence why a job is in its state.

    ID is the job's id, or a beginning of it that no other job shares.
    """

    async def read(database: Database) -> Explanation:
        async with database.transaction() as session:
            job_id = await job.resolve(session)
        async with database.hot() as connection:
            return await explain_job(connection, job_id)

    answer = with_database(read)
    if as_json:
        # A breaker's facts have a reason of their own, which is among the parameters, too: it must not replace ours.
        said = {"reason": answer.reason.value, "sentence": answer.sentence, "key": answer.key, "params": answer.params}
        print_json({**answer.facts, **said})
    else:
        print_line(styled(answer.sentence))
