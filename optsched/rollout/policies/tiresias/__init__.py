"""Parts of Tiresias: which gangs are consolidated, and the Gittins index."""
