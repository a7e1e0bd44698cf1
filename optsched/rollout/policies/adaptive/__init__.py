"""Policies that give jobs more or fewer GPUs as these prove to use them well."""
