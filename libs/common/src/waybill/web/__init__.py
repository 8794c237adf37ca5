"""What the API routes and the pages share."""
