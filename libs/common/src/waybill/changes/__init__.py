"""What has happened: `publish` says so in the transaction that did it, `Subscriptions` wakes whoever waits for it."""

from waybill.changes.events import Event, publish
from waybill.changes.subscriptions import BLIND, BREAKERS, Subscriptions

__all__ = ["BLIND", "BREAKERS", "Event", "Subscriptions", "publish"]
