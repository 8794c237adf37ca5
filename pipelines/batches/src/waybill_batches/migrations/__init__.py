"""The pipeline's branch of migrations."""
