"""Giving coding agents a memory and taking it back: a file per agent, standard library only."""
