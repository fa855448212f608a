"""Memories elsewhere: naming them, reading them, publishing to them."""
