"""Theory's policies for malleable jobs on so many GPUs: heSRPT, SmartFill, WHAM."""
