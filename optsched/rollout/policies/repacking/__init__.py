"""Placements that move running gangs where that pays."""
