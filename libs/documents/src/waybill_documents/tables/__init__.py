"""Tables: finding their headers and columns, and assembling lines into rows."""
