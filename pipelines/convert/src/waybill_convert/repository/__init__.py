"""All SQL on the pipeline's tables, one module per concern."""
