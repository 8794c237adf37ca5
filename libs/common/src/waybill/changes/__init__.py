"""Subscriptions: hearing that something has changed."""
