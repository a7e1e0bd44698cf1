"""Tables, pictures and explanations of EaCO."""
