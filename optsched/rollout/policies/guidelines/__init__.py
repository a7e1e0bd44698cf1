"""The guidelines of Philly's study, each a part of policy `philly` that an option switches on."""
