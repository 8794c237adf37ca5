"""Reads workbooks and CSV files by a mapping.

A sheet is laid out as a page: one line for each row, one wide gap between two columns. Fields and tables are then found
by the same code as in a PDF. Afterwards, each place is named by its cells (`Sheet1!C7`), and a value that fills a typed
cell is taken from the cell itself and not from its text.
"""
