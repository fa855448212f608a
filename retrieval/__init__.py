"""The read path: words and vectors, fused, weighed by age, folded, with their neighbours."""
