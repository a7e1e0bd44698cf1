"""Tables, pictures and explanations of PAL."""
