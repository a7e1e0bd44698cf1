"""Groups that policies keep from call to call, so that a call looks at what has changed alone."""
