"""Named instances on which `exact` is to prove all that HiGHS on the plain model proves."""
