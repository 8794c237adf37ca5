"""`python -m waybill_engine.worker`: a worker for the handlers that `WAYBILL_WORKER_HANDLERS` names."""

from waybill_engine.worker.program import main

if __name__ == "__main__":
    main("waybill_engine.worker")
