"""Certificates: what those of several problems share."""
