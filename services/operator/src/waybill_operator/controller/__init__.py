"""What the leader does: it makes the cluster be as the pools say."""
