"""PDF files: opening them, reading words with boxes, and drawing pages."""
