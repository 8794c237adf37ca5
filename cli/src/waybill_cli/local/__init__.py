"""`waybill up`: all of Waybill on one machine, with an embedded Postgres and the services beside it."""
