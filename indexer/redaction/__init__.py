"""Finds secrets in what is about to be stored or shown, and takes them out."""
