"""`waybill batch`."""
