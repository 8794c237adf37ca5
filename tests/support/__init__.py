"""Helpers that the tests of several areas share."""
