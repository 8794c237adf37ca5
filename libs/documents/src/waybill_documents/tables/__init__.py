"""Tables: where the columns are, and which lines make a row."""
