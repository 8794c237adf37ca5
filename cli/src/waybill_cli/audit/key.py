"""`waybill audit key`: the public key that checks the trail."""

from __future__ import annotations

from waybill.audit.signatures import Signer
from waybill.console.database import find_settings, with_database
from waybill.console.options import AsJson
from waybill.console.terminal import print_json, print_line, remark
from waybill.db import Database


def key(as_json: AsJson = False) -> None:
    """Print the public key of the audit trail. Whoever has it can check the trail, and cannot sign anything.

    Save it to a file, and give that to `waybill audit verify --key`.
    """
    settings, _ = find_settings()

    async def read(database: Database) -> Signer:
        async with database.hot() as connection:
            return await Signer.of(settings, connection)

    signer = with_database(read)
    if as_json:
        print_json({"algorithm": "Ed25519", "fingerprint": signer.fingerprint, "public_key": signer.pem})
        return
    print_line(signer.pem.rstrip())
    remark(f"Checkpoints that it signed say {signer.fingerprint}.")
