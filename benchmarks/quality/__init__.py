"""How good recall is, by stages: a labelled set of the repository's own, and sets of others."""
