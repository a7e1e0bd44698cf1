"""PAL where options are many: prices by ascent on the smoothed dual, and plans from them."""
