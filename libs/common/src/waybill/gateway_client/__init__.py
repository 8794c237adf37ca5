"""What every pipeline needs in order to call the gateway: connections, answers, and a document on its way there."""
