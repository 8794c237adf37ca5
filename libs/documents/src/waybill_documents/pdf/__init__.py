"""PDF files: opening them, and reading words with boxes off their pages."""
