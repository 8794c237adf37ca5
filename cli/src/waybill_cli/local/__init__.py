"""`waybill up`: all of Waybill on one machine, with an embedded Postgres and a supervisor for the services."""
