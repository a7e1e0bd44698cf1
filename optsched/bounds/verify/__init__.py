"""The verifier of bounds: what prices prove, in whole numbers rounded outward."""
