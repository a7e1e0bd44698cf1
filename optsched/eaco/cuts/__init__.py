"""Cuts of EaCO's set partitioning, and what its tree branches on."""
