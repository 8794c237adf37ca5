"""The services that a batch's jobs call."""
