"""Waybill's worker: the engine's worker program with the handlers of every installed pipeline."""
