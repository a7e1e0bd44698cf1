"""Results: what a solve states, as a document, and files of them."""
